"""Print the manual page quiver-lab(1) from the declarations of its commands: lab_manual.py LIBRARIES."""

import sys

sys.path.insert(0, sys.argv[1])

import typer  # the libraries are in the folder that is named
from quiver_lab.cli import app


def escaped(text: str) -> str:
    """Return text that roff prints as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in text.split("\n"))


def paragraphs(text: str) -> str:
    """Return the paragraphs of a help text."""
    parts = [" ".join(part.split()) for part in text.replace("\b", "").split("\n\n")]
    return "\n.PP\n".join(escaped(part) for part in parts if part)


def options(command: typer.core.TyperCommand, context: typer.Context) -> str:
    """Return a tagged paragraph for each parameter that has a help."""
    records = (parameter.get_help_record(context) for parameter in command.get_params(context))
    return "".join(
        f".TP\n\\fB{escaped(record[0])}\\fR\n{escaped(' '.join(record[1].split())) or chr(92) + '&'}\n"
        for record in records
        if record
    )


def section(name: str, command: typer.core.TyperCommand, parent: typer.Context) -> str:
    """Return the section of one command."""
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    command = context.command  # a command is loaded when it is called
    usage = " ".join(command.collect_usage_pieces(context))
    text = paragraphs(command.help or "")
    return (
        f'.SS "quiver\\-lab {escaped(name)}"\n\\fBquiver\\-lab {escaped(name)}\\fR {escaped(usage)}\n'
        f".PP\n{text}\n{options(command, context)}"
    )


def page() -> str:
    """Return the page."""
    group = typer.main.get_command(app)
    top = group.make_context("quiver-lab", [], resilient_parsing=True)
    names = group.list_commands(top)
    sections = [section(name, command, top) for name in names if (command := group.get_command(top, name))]
    return (
        '.TH QUIVER\\-LAB 1 "" "Quiver" "Quiver"\n.nh\n.ad l\n'
        ".SH NAME\nquiver\\-lab \\- performance lab of the Quiver router\n"
        ".SH SYNOPSIS\n\\fBquiver\\-lab\\fR COMMAND [OPTIONS]\n"
        f".SH DESCRIPTION\n{paragraphs(group.help or '')}\n{options(group, top)}"
        ".SH COMMANDS\n" + "".join(sections) + '.SH "SEE ALSO"\nquiver\\-tg(1), quiverd(8)\n'
    )


if __name__ == "__main__":
    sys.stdout.write(page())
