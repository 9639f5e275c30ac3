"""Frames on a stream: lengths, a small JSON head, a body.

In:   asyncio streams.
Out:  Frame. Nothing longer than the limits is ever read into memory.
Not here: what frames mean (network.py).
"""

from __future__ import annotations

import asyncio
import struct
from typing import Any, NamedTuple

from sfumato.centres.messages import Message, read_json, write_json
from sfumato.centres.round import Round
from sfumato.errors import MessageError

__all__ = ["Frame", "largest_body", "message_frame", "read_frame", "read_message", "write_frame"]

_LENGTHS = struct.Struct(">II")
_LARGEST_HEAD = 4096


class Frame(NamedTuple):
    """What travels at once: a few named values, and bytes that follow them as they are."""

    head: dict[str, Any]
    body: bytes


def largest_body(agreed: Round) -> int:
    """What the longest message of a round can need: the vector, the public result, or a parcel for every centre."""
    return (1 << 20) + 32 * agreed.length + 4096 * len(agreed.centres)


async def write_frame(writer: asyncio.StreamWriter, head: dict[str, Any], body: bytes = b"") -> None:
    """Send a head and the bytes after it, and wait until they are on their way."""
    text = write_json(head)
    writer.write(_LENGTHS.pack(len(text), len(body)) + text)
    writer.write(body)
    await writer.drain()


async def read_frame(reader: asyncio.StreamReader, largest: int) -> Frame:
    """The next frame; MessageError if it is longer than `largest` or no frame at all."""
    head_size, body_size = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
    if head_size > _LARGEST_HEAD or body_size > largest:
        raise MessageError("A message is longer than the round allows.")
    head = read_json(await reader.readexactly(head_size), dict)
    return Frame(head, await reader.readexactly(body_size))


def message_frame(message: Message) -> Frame:
    """A message as it travels, its body outside of the head."""
    record = message.to_dict()
    del record["body"]
    return Frame(record, message.body)


async def read_message(reader: asyncio.StreamReader, largest: int) -> Message:
    """The next frame as a message, whose signature is not checked yet; MessageError if it is none."""
    head, body = await read_frame(reader, largest)
    found = Message.from_dict({**head, "body": ""})
    return Message(found.round_hash, found.sender, found.step, body, found.signature)
