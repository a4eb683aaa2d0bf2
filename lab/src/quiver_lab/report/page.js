// Draws the figures whose specifications the page carries.
for (const [key, spec] of Object.entries(SPECS)) {
  Plotly.newPlot("figure-" + key, spec.data, spec.layout, {
    responsive: true,
    displaylogo: false,
    displayModeBar: true,
    modeBarButtons: [["toImage"]],
    toImageButtonOptions: { format: "png", scale: 2, filename: "quiver-" + key },
  });
}
