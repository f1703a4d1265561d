"""The worker: makes documents in a process of its own.

A schema can keep a validator busy for years, and no thread can be stopped; a process can. What it
needs is bounded by its system: processor time for each job, and memory.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Mapping
from decimal import Decimal
from random import Random
from typing import Any, BinaryIO, Final

import jsonschema_rs
import msgspec

from antiphon.backends.documents.conjunction import LOCAL, Schema
from antiphon.backends.documents.job import MAX_SCHEMA, Answer, Job
from antiphon.backends.documents.order import ordered, ranks
from antiphon.backends.documents.problem import Problem, SchemaProblem
from antiphon.backends.documents.tree import moved, pointed, schemas
from antiphon.backends.documents.values import ValueMaker

__all__ = ["document", "main"]

CPU_SECONDS: Final = 2.0
"""How long a job may keep the processor busy before the system ends the worker."""
_MAX_MEMORY: Final = 512 << 20
"""The largest address space of a worker, in bytes."""
_TRIES: Final = 8
"""How many documents are made at most until one is valid, and then how many of the smallest."""
_MAX_PATHS: Final = 50_000
"""In how many ways one value may be led through a schema."""
_ROOT: Final = "urn:document:schema"
"""The address that schemas made of parts of a schema refer to it by."""
_DIALECTS: Final = ("draft-04", "draft-06", "draft-07", "2019-09", "2020-12")

_parse = msgspec.json.Decoder(float_hook=Decimal).decode
_print = msgspec.json.Encoder(decimal_format="number").encode
_reread = msgspec.json.Decoder().decode
_OPTIONS: Final = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=20_000, size_limit=4 << 20, dfa_size_limit=4 << 20
)


def document(job: Job) -> str:
    """Returns a document that fits a schema, and was validated.

    Args:
        job: what is asked.

    Raises:
        SchemaProblem: the schema is invalid, nothing fits it, or it takes too much to see.
    """
    if len(job.schema) > MAX_SCHEMA:
        raise SchemaProblem(Problem.TOO_COMPLEX)
    schema = _dialected(_parse(job.schema))
    _check_paths(schema)
    valid = _validator(schema)
    if job.check:
        return ""
    if job.given and _fits(job.given, valid, job):
        return job.given
    # What cannot be made from the canonical form can be from the schema itself, now and then.
    for root in (_canonical(schema, objects=job.object), schema):
        made = _made(root, schema, valid, job)
        if made:
            return made
    raise SchemaProblem(Problem.NOT_FOUND)


def _made(root: Any, schema: Any, valid: jsonschema_rs.Validator, job: Job) -> str:
    """Returns a document that is valid, or "" if none was found."""
    subschemas = _Subschemas(root)
    maker = ValueMaker(
        root,
        Random(job.seed),  # noqa: S311 - the same job has the same answer
        words=job.words,
        mentioned=job.mentioned,
        ranks=ranks(schema),
        fits=subschemas.fits,
        without=subschemas.without,
    )
    for thrifty in (False, True):
        for _ in range(_TRIES):
            try:
                text = _print(ordered(maker.make(thrifty=thrifty), schema))
            except SchemaProblem as error:
                if error.problem is Problem.NOT_FOUND:
                    continue
                if thrifty:
                    raise
                break
            value = _reread(text)
            if valid.is_valid(value) and (not job.object or isinstance(value, dict)):
                return text.decode()
    return ""


def _fits(text: str, valid: jsonschema_rs.Validator, job: Job) -> bool:
    """Whether a text, whatever it may be, is a document that is asked for."""
    try:
        value = _reread(text)
        return valid.is_valid(value) and (not job.object or isinstance(value, dict))
    except (ValueError, RecursionError):
        return False


class _Subschemas:
    """What is known of the schemas within one, and of those made of them.

    Args:
        root: the schema that their references are within.
    """

    def __init__(self, root: Any) -> None:
        self._registry = jsonschema_rs.Registry([(_ROOT, root)])
        self._dialect = (
            {"$schema": root["$schema"]} if isinstance(root, dict) and "$schema" in root else {}
        )
        self._known: dict[int, tuple[Any, jsonschema_rs.Validator | None]] = {}

    def fits(self, node: Any, value: Any) -> bool:
        """Whether a value fits a schema; what cannot be told is seen to at the end."""
        # The node is kept, so that its identity stays its own.
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = (node, self._validator(node))
        return known[1] is None or known[1].is_valid(value)

    def _validator(self, node: Any) -> jsonschema_rs.Validator | None:
        try:
            return _validator(self._placed(node), self._registry)
        except SchemaProblem:
            return None

    def _placed(self, node: Any) -> Any:
        if not isinstance(node, Mapping):
            return node
        own = {key: value for key, value in node.items() if key not in ("$id", *LOCAL)}
        return {**self._dialect, **moved(own, _ROOT)}

    def without(self, node: Schema, other: Schema) -> Schema:
        """Returns a schema of what fits one schema and does not fit another."""
        plain = {**self._dialect, "allOf": [node, {"not": other}]}
        if any("$ref" in each for part in (node, other) for each in schemas(part)):
            return plain
        found: Schema = _canonical(plain, objects=False)
        return found


def _dialected(schema: Any) -> Any:
    """Takes out a dialect that is not known: the schema is then of the newest one."""
    if isinstance(schema, dict):
        dialect = schema.get("$schema")
        if dialect is not None and not any(each in str(dialect) for each in _DIALECTS):
            return {key: value for key, value in schema.items() if key != "$schema"}
    return schema


def _validator(
    schema: Any, registry: jsonschema_rs.Registry | None = None
) -> jsonschema_rs.Validator:
    try:
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=True,
            offline=True,
            registry=registry,
            pattern_options=_OPTIONS,
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        kind = error.kind if isinstance(error, jsonschema_rs.ValidationError) else None
        format_ = kind.format if isinstance(kind, jsonschema_rs.ValidationErrorKind.Format) else ""
        problem = Problem.PATTERN if format_ == "regex" else Problem.INVALID
        raise SchemaProblem(problem) from None


def _canonical(schema: Any, *, objects: bool) -> Any:
    """Returns the canonical form of a schema, or the schema itself if it has none."""
    try:
        canonical = _canonicalized(schema)
        if objects:
            canonical = canonical.intersect(_canonicalized({"type": "object"}))
        return canonical.to_json_schema()
    except (ValueError, jsonschema_rs.canonical.CanonicalizationError):
        return schema


def _canonicalized(schema: Any) -> jsonschema_rs.CanonicalSchema:
    return jsonschema_rs.canonicalize(
        schema, validate_formats=True, offline=True, pattern_options=_OPTIONS
    )


def _check_paths(root: Any) -> None:
    """Refuses a schema that leads one value through too many others, by references that branch."""
    known: dict[int, int] = {}

    def paths(node: Any, depth: int) -> int:
        if not isinstance(node, dict) or depth > 200:
            return 1
        found = known.get(id(node))
        if found is None:
            # Until it is known, a schema that leads back to itself counts once.
            known[id(node)] = 1
            found = 1
            for key in ("allOf", "anyOf", "oneOf"):
                branches = node.get(key)
                if isinstance(branches, list):
                    found += sum(paths(branch, depth + 1) for branch in branches)
            for key in ("not", "if", "then", "else"):
                found += paths(node[key], depth + 1) if key in node else 0
            reference = node.get("$ref")
            if isinstance(reference, str):
                found += paths(pointed(reference, root), depth + 1)
            known[id(node)] = min(found, _MAX_PATHS + 1)
        return found

    if any(paths(node, 0) > _MAX_PATHS for node in schemas(root)):
        raise SchemaProblem(Problem.TOO_COMPLEX)


def main(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Does jobs until there are no more.

    Args:
        jobs: where they come from, each after its size in four bytes.
        answers: where the answers go, in the same way.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
    # The server reads what was written before this, and nothing after it.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    sys.setrecursionlimit(4000)
    decode = msgspec.msgpack.Decoder(Job).decode
    encode = msgspec.msgpack.Encoder().encode
    while size := int.from_bytes(jobs.read(4)):
        job = decode(jobs.read(size))
        # The system ends the process when the time is up, whatever it does.
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        reply = encode(_answer(job))
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(len(reply).to_bytes(4) + reply)
        answers.flush()


def _answer(job: Job) -> Answer:
    try:
        return Answer(document(job))
    except SchemaProblem as error:
        return Answer(problem=error.problem.name)
    except BaseException:  # noqa: BLE001 - whatever a schema breaks, a panic too, is its fault
        return Answer(problem=Problem.TOO_COMPLEX.name)
