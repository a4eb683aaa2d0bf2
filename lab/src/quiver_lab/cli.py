"""The command `quiver-lab`: which commands there are. Each is loaded when it is called: help is quick."""

from __future__ import annotations

from quiver_lab.commands.application import DESCRIPTION, Listed, make_app

COMMANDS = (
    Listed("demo", "measuring.demo", "Route real traffic in six scenarios, measure it, and draw the report."),
    Listed("run", "measuring.run", "Run experiments, draw the report, and keep the results in the store."),
    Listed(
        "report", "measuring.report", "Draw the page for results that were measured earlier, or elsewhere."
    ),
    Listed("new", "files.new", "Write an experiment file, and say what it will run."),
    Listed(
        "check", "files.check", "Validate experiments and print the names of their tests; nothing starts."
    ),
    Listed("list", "files.list_tests", "List experiments with the tests that they have."),
    Listed(
        "compare",
        "comparing.compare",
        "Say which is faster: Quiver and its peers, two results, or two builds.",
    ),
    Listed("query", "stored.query", "Ask the store in SQL (DuckDB's)."),
    Listed("store", "stored.keep", "Put results from elsewhere into the store."),
    Listed("trend", "history.trend", "Say where a figure changed over the commits whose results are stored."),
    Listed("bisect", "history.bisect_commits", "Find the commit that made a figure worse, by measuring."),
    Listed("export", "stored.export_bundle", "Write a bundle from which another machine repeats the run."),
    Listed("reproduce", "stored.reproduce", "Repeat a bundle's run here, and say how it compares."),
    Listed("live", "watching.live", "Show a run's trials as they happen, in a browser; until Ctrl-C."),
    Listed("name", "files.name", "Take a test name apart."),
    Listed(
        "schema", "files.schema", "Print the JSON schema of an experiment, a scenario, or a results file."
    ),
)

app = make_app(COMMANDS, DESCRIPTION)
