"""The JSON object that is one call in most formats: {"name": ..., "arguments": {...}}.

Owns: the members' order (any), when the call is known (its name is and its arguments begin), what may stand behind the
arguments.
Does not own: what stands around the object.
Results: an object with a name and without arguments is a call with the arguments {} where a marker has said that it is
a call and it has no other members, and no call otherwise; arguments that come before the name are held until the object
closes; members behind the arguments are dropped. Arguments cut off by the end of the text, or by the format's closing
marker, stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from octavo.parsers.cursor import BLANK, Cursor, EndOfTextError, MalformedError, Steps
from octavo.parsers.json_text import ValueEnd, check_value_start, nowhere, read_name, read_value
from octavo.parsers.writer import EventWriter

ARGUMENT_KEYS = frozenset({"arguments", "parameters"})


@dataclass(frozen=True, slots=True)
class CallShape:
    """What an object must look like to be a call.

    is_marked: a marker says that it is one: it may have other members, and no arguments.
    stop: the marker, beginning with "<", that ends a call whose object was not closed.
    """

    is_marked: bool
    stop: str = ""


_SILENT_KEYS = frozenset({"type", "id"})


def read_call(cursor: Cursor, writer: EventWriter, shape: CallShape) -> Steps[None]:
    """Read one object, while keeping. Raises MalformedError, still keeping, if it is no call; else nothing is kept."""
    name, early, has_others = "", "", False
    yield from cursor.expect("{")
    yield from cursor.skip(BLANK)
    while True:
        key = yield from read_name(cursor)
        yield from cursor.skip(BLANK)
        yield from cursor.expect(":")
        yield from cursor.skip(BLANK)
        if key == "name" and not name:
            name = yield from read_name(cursor)
        elif key in ARGUMENT_KEYS and name and not early:
            check_value_start((yield from cursor.peek()))
            cursor.take_kept()
            yield from _read_arguments(cursor, writer, name, shape)
            return
        else:
            if key not in ARGUMENT_KEYS and key not in _SILENT_KEYS:
                has_others = True
                if not shape.is_marked:
                    raise MalformedError
            value = yield from _read_held(cursor)
            early = early or (value if key in ARGUMENT_KEYS else "")
        yield from cursor.skip(BLANK)
        if (yield from cursor.looking_at("}")):
            break
        yield from cursor.expect(",")
        yield from cursor.skip(BLANK)
    if not name or not (early or (shape.is_marked and not has_others)):
        raise MalformedError
    cursor.take(1)
    cursor.take_kept()
    writer.begin_call(name)
    writer.arguments(early or "{}")
    writer.end_call()


def _read_held(cursor: Cursor) -> Steps[str]:
    """A whole value. Raises MalformedError if it is none or the text ends."""
    parts: list[str] = []
    check_value_start((yield from cursor.peek()))
    if (yield from read_value(cursor, parts.append)) is not ValueEnd.CLOSED:
        raise EndOfTextError
    return "".join(parts)


def _read_arguments(cursor: Cursor, writer: EventWriter, name: str, shape: CallShape) -> Steps[None]:
    """The arguments, as they come, and the rest of the object."""
    writer.begin_call(name)
    end = yield from read_value(cursor, writer.arguments, shape.stop)
    if end is ValueEnd.CUT:
        return
    writer.end_call()
    if end is ValueEnd.STOPPED:
        return
    cursor.keep()
    try:
        yield from _skip_members(cursor, shape)
    except EndOfTextError:
        cursor.drop_rest()
    except MalformedError:
        writer.content(cursor.take_kept())
        return
    cursor.take_kept()


def _skip_members(cursor: Cursor, shape: CallShape) -> Steps[None]:
    """From behind the arguments up to and with the object's end, or up to the format's closing marker."""
    closers = ("}", ",", shape.stop) if shape.stop else ("}", ",")
    while True:
        yield from cursor.skip(BLANK)
        closer = yield from cursor.looking_at(*closers)
        if not closer:
            raise MalformedError
        if closer == shape.stop:
            return
        cursor.take(1)
        if closer == "}":
            return
        yield from cursor.skip(BLANK)
        yield from read_name(cursor)
        yield from cursor.skip(BLANK)
        yield from cursor.expect(":")
        yield from cursor.skip(BLANK)
        check_value_start((yield from cursor.peek()))
        yield from read_value(cursor, nowhere)
