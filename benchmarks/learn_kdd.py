"""KDD Cup 1999, denial of service against the rest: default private classifiers beside the bars and the peer.

Run: python benchmarks/learn_kdd.py [draws [folds]]. 70,000 random rows of the 10 percent file; bounds by hand.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from learn_common import cross_validate, line, peer, read

from sfumato.core import Categories, Interval, Schema
from sfumato.learn import PrivateLogisticRegression, PrivateSVC, SchemaEncoder

DENIAL_OF_SERVICE = ("back", "land", "neptune", "pod", "smurf", "teardrop")
ROWS = 70_000

_COUNTS = {  # a window of two seconds or a hundred connections; one connection; bytes up to the largest IPv4 packet
    "duration": 1000, "src_bytes": 65_535, "dst_bytes": 65_535, "wrong_fragment": 3, "urgent": 3, "hot": 30,
    "num_failed_logins": 5, "num_compromised": 10, "num_root": 10, "num_file_creations": 10, "num_shells": 2,
    "num_access_files": 5, "num_outbound_cmds": 1, "count": 511, "srv_count": 511, "dst_host_count": 255,
    "dst_host_srv_count": 255,
}  # fmt: skip
_FLAGS = ("land", "logged_in", "root_shell", "su_attempted", "is_host_login", "is_guest_login")
_SERVICES = [
    "http",
    "smtp",
    "ftp",
    "ftp_data",
    "telnet",
    "domain",
    "domain_u",
    "private",
    "eco_i",
    "ecr_i",
    "finger",
    "auth",
    "pop_3",
    "ntp_u",
    "time",
    "other",
]


def _list(values: list[str]) -> Categories:
    return Categories([*values, "rest"], unknown="rest", null="rest")


_RATES = {
    "": "serror srv_serror rerror srv_rerror same_srv diff_srv srv_diff_host",
    "dst_host_": "same_srv diff_srv same_src_port srv_diff_host serror srv_serror rerror srv_rerror",
}

SCHEMA = Schema(
    {
        "protocol_type": _list(["tcp", "udp", "icmp"]),
        "service": _list(_SERVICES),
        "flag": _list(["SF", "S0", "REJ", "RSTR", "RSTO", "SH", "S1", "S2", "S3", "RSTOS0", "OTH"]),
        **{name: Interval(0, high) for name, high in _COUNTS.items()},
        **{name: Interval(0, 1) for name in _FLAGS},
        **{f"{start}{name}_rate": Interval(0, 1) for start, names in _RATES.items() for name in names.split()},
    }
)

BARS = ((0.1, 1e-6, 0.010, None), (0.1, 0.0, 0.015, None))


def table() -> tuple[Any, np.ndarray]:
    rows = read("kddcup99_10pct.parquet")
    rows = rows.take(np.random.default_rng(0).choice(rows.num_rows, ROWS, replace=False))
    return rows, np.isin(np.asarray(rows.column("label").to_pylist()), DENIAL_OF_SERVICE).astype(int)


def load() -> tuple[np.ndarray, np.ndarray]:
    """The encoded rows, for the peer."""
    rows, labels = table()
    return SchemaEncoder(SCHEMA).fit_transform(rows), labels


def main(draws: int = 10, count: int = 10) -> bool:
    rows, labels = table()
    print(f"KDD Cup 1999: {rows.num_rows} rows, {SCHEMA.width} features, {count}-fold, {draws} draws, all defaults")
    met = True
    for epsilon, delta, error_bar, auc_bar in BARS:
        for name, kind in (("logistic", PrivateLogisticRegression), ("huber SVM", PrivateSVC)):
            score = cross_validate(
                lambda seed, kind=kind, epsilon=epsilon, delta=delta: kind(
                    epsilon, delta, schema=SCHEMA, random_state=seed
                ),
                rows,
                labels,
                draws,
                count,
            )
            text = peer(f"kdd {epsilon:g}")
            met &= line(f"{name} ({epsilon:g}, {delta:g})", score, error_bar, auc_bar, text) or kind is PrivateSVC
    return met


if __name__ == "__main__":
    sys.exit(not main(*map(int, sys.argv[1:])))
