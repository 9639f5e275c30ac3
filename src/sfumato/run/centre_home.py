"""A party's own folder, and the folder of a round that all of them share.

In:   names, cards, a study.
Out:  Home (key, card, ledger: stays with its party), RoundFolder (study, round, cards: public, sent to everybody).
Not here: what a round is (centres/), taking part (run/centre_part.py).
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from sfumato.centres.card import PartyCard, new_card
from sfumato.centres.round import Round
from sfumato.centres.study_round import StudyRound
from sfumato.core.places import Place, place_of
from sfumato.errors import InputError, OtherRoundError, RefusedError
from sfumato.lang import load
from sfumato.ledger.ledger import Ledger
from sfumato.plan.make import network_of
from sfumato.plan.plan import Plan
from sfumato.run.derived import derive_plan
from sfumato.run.over_centres import study_round
from sfumato.run.study_file import plan_study, public_tables

__all__ = ["COORDINATOR", "Home", "RoundFolder", "new_key", "read_key"]

COORDINATOR = "coordinator"
_KEY, _LEDGER, _ROUND, _CARDS, _PLAN = "key.pem", "ledger.db", "round.json", "cards", "plan.json"


def new_key(path: Path) -> Ed25519PrivateKey:
    """A new Ed25519 key in a file that only its owner may read."""
    key = Ed25519PrivateKey.generate()
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise InputError(
            f"{path} exists, and a key is never overwritten. If it is yours it serves again, and so does the card that "
            "was made with it: send that one. For another party, give another name. Nothing was made."
        ) from error
    except OSError as error:
        raise InputError(f"{path} cannot be written ({type(error).__name__}). Nothing was made.") from error
    with os.fdopen(handle, "wb") as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key


def read_key(path: Path) -> Ed25519PrivateKey:
    """The private key in a file."""
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path}: no private key can be read from it. Nothing was run.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path}: an Ed25519 key is needed (sfumato centre init NAME). Nothing was run.")
    return key


@dataclass(frozen=True)
class Home:
    """What a party keeps to itself; only the card is shown."""

    folder: Path
    name: str

    @property
    def key_file(self) -> Path:
        return self.folder / _KEY

    @property
    def card_file(self) -> Path:
        return self.folder / f"{self.name}.card"

    @property
    def ledger_file(self) -> Path:
        return self.folder / _LEDGER

    @classmethod
    def make(cls, folder: Place, name: str, *, address: str = "", ledger: bool = True) -> Home:
        """A new folder with a key, a card and an empty ledger: nothing is granted in it."""
        folder = place_of(folder)
        made = cls(folder, name)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new_card(name, new_key(made.key_file), address).write(made.card_file)
        if ledger:
            Ledger(made.ledger_file)
        return made

    @classmethod
    def open(cls, folder: Place, name: str) -> Home:
        made = cls(place_of(folder), name)
        if not made.key_file.is_file() or not made.card_file.is_file():
            raise InputError(
                f"{folder} is not the folder of {name}: it has no key and card. Make it once with `sfumato centre init "
                f"{shlex.quote(name)}`, or say where it is with --home FOLDER. Nothing was read and nothing was spent."
            )
        return made

    def key(self) -> Ed25519PrivateKey:
        return read_key(self.key_file)

    def card(self) -> PartyCard:
        return PartyCard.read(self.card_file)


@dataclass(frozen=True)
class RoundFolder:
    """A round as everybody has it: the study's text, its public tables, its plan, the cards, the round itself."""

    folder: Path
    round: StudyRound
    coordinator: PartyCard
    cards: tuple[PartyCard, ...]
    #: Of a study with steps, the one that is published.
    at: int | None = None

    @classmethod
    def make(
        cls,
        study: Place,
        cards: Sequence[PartyCard],
        folder: Place,
        coordinator: PartyCard,
        sizes: Mapping[str, float],
        at: int | None = None,
    ) -> RoundFolder:
        """Plans the study, or one of its steps, and writes all that the centres need to derive the plan again."""
        study, folder = place_of(study), place_of(folder)
        if folder.exists():
            raise InputError(
                f"{folder} exists: write the same command with a new folder, such as --out {folder}-2; or carry out "
                f"the round that is there: sfumato run {study} --centres {folder} --out published. Nothing was made."
            )
        plan = plan_study(study, None, sizes, at)
        agreed = study_round(plan, [card.centre for card in cards], sizes)
        assert plan.network is not None
        (folder / _CARDS).mkdir(parents=True)
        shutil.copyfile(study, folder / study.name)
        for source in plan.network.spec.sources:
            if source.table in plan.network.spec.public_tables:
                _copy(study.parent / source.path, folder / source.path)
        for card in (*cards, coordinator):
            card.write(folder / _CARDS / f"{card.name}.card")
        (folder / _PLAN).write_text(plan.to_json(), encoding="utf-8")
        record = {"study": study.name, "at": at, "coordinator": coordinator.name, "round": agreed.to_dict()}
        (folder / _ROUND).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        return cls(folder, agreed, coordinator, tuple(cards), at)

    @classmethod
    def read(cls, folder: Place) -> RoundFolder:
        folder = place_of(folder)
        try:
            record: dict[str, Any] = json.loads((folder / _ROUND).read_text(encoding="utf-8"))
            agreed, leader = Round.from_dict(record["round"]), str(record["coordinator"])
            at = None if record["at"] is None else int(record["at"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{folder} is no folder of a round. The coordinator makes one with `sfumato coordinate init STUDY.pl "
                "CARD CARD …` and sends it to every centre. Nothing was run."
            ) from error
        if not isinstance(agreed, StudyRound):
            raise InputError(f"{folder}: this is no round of a study. Nothing was run.")
        cards = [PartyCard.read(folder / _CARDS / f"{centre.name}.card") for centre in agreed.centres]
        for card, centre in zip(cards, agreed.centres, strict=True):
            if card.centre != centre:
                raise RefusedError(f"The card of {centre.name} in {folder} is not the one of the round.")
        return cls(folder, agreed, PartyCard.read(folder / _CARDS / f"{leader}.card"), tuple(cards), at)

    @property
    def study(self) -> Path:
        record = json.loads((self.folder / _ROUND).read_text(encoding="utf-8"))
        name = Path(str(record["study"]))
        if name.name != str(name):
            raise RefusedError(f"{self.folder}: the study's name is a path. Nothing was run.")
        return self.folder / name

    def plan(self) -> Plan:
        """The plan, derived again from the study's text; RefusedError unless the round is what both ask for.

        No optimisation is repeated, so machines that compute the last digits otherwise agree all the same.
        """
        spec = load(self.study, self.at)
        plan = replace(Plan.read(self.folder / _PLAN), network=network_of(spec, public_tables(spec, self.folder)))
        assert plan.network is not None
        false = next((one for one in derive_plan(plan, plan.network) if not one.ok), None)
        if false is not None:
            raise OtherRoundError(
                f"{self.folder}: the plan does not follow from the study ({false.field}: {false.sentence}) Ask the "
                "coordinator for `sfumato coordinate init` again. Nothing was read and nothing was spent."
            )
        own = study_round(plan, self.round.centres, self.round.sizes, step_seconds=self.round.step_seconds)
        stated, found = self.round.description(), own.description()
        changed = [name for name, value in stated.items() if found[name] != value]
        if changed:
            raise OtherRoundError(
                f"{self.folder}: the round is not what its study asks for (it differs in {', '.join(changed)}): it was "
                "made by another version, or changed. Ask the coordinator for `sfumato coordinate init` again. Nothing "
                "was read and nothing was spent."
            )
        return plan


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)
