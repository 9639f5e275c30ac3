"""Adult and KDD Cup 1999 as Chaudhuri, Monteleoni & Sarwate 2011 prepare them, by public bounds instead of the data's.

In:   the name of a data set, how many rows, a seed.
Out:  Records: the same shuffled rows in the paper's coding and in the one of this project's estimators, and labels.
Not here: training (chaudhuri_trials.py), where files lie (data.py).

The paper scales columns by their largest value and drops rows with missing entries: both publish something about the
data. Here bounds are written by hand from what a column means, and "missing" is a category.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import md5

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from papers.data import find
from sfumato.core.domain import Categories, Interval
from sfumato.core.schema import Schema
from sfumato.errors import DataError
from sfumato.learn import SchemaEncoder

__all__ = ["FILES", "SCHEMAS", "Records", "read_records", "twins_of"]


def _list(words: str, rest: str) -> Categories:
    return Categories((*words.split(), rest), unknown=rest, null=rest)


#: From the census questionnaire. fnlwgt is a sampling weight, not an attribute of a person.
_ADULT = Schema(
    {
        "age": Interval(17, 90),
        "workclass": _list(
            "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked", "missing"
        ),
        "education": _list(
            "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th "
            "10th Doctorate 5th-6th Preschool",
            "missing",
        ),
        "education_num": Interval(1, 16),
        "marital_status": _list(
            "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse",
            "missing",
        ),
        "occupation": _list(
            "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
            "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv "
            "Armed-Forces",
            "missing",
        ),
        "relationship": _list("Wife Own-child Husband Not-in-family Other-relative Unmarried", "missing"),
        "race": _list("White Asian-Pac-Islander Amer-Indian-Eskimo Other Black", "missing"),
        "sex": Categories(("Female", "Male"), unknown="Male", null="Male"),
        "capital_gain": Interval(0, 20_000),
        "capital_loss": Interval(0, 4_000),
        "hours_per_week": Interval(0, 100),
        "native_country": _list(
            "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan Greece "
            "South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France "
            "Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand "
            "Yugoslavia El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands",
            "missing",
        ),
    }
)

_COUNTS = {  # a window of two seconds or a hundred connections; one connection; bytes up to the largest IPv4 packet
    "duration": 1000, "src_bytes": 65_535, "dst_bytes": 65_535, "wrong_fragment": 3, "urgent": 3, "hot": 30,
    "num_failed_logins": 5, "num_compromised": 10, "num_root": 10, "num_file_creations": 10, "num_shells": 2,
    "num_access_files": 5, "num_outbound_cmds": 1, "count": 511, "srv_count": 511, "dst_host_count": 255,
    "dst_host_srv_count": 255,
}  # fmt: skip
_FLAGS = ("land", "logged_in", "root_shell", "su_attempted", "is_host_login", "is_guest_login")
_RATES = {
    "": "serror srv_serror rerror srv_rerror same_srv diff_srv srv_diff_host",
    "dst_host_": "same_srv diff_srv same_src_port srv_diff_host serror srv_serror rerror srv_rerror",
}
#: All services of the published description of the data, as the paper's 119 columns need them.
_SERVICES = (
    "IRC X11 Z39_50 aol auth bgp courier csnet_ns ctf daytime discard domain domain_u echo eco_i ecr_i efs exec finger "
    "ftp ftp_data gopher harvest hostnames http http_2784 http_443 http_8001 imap4 iso_tsap klogin kshell ldap link "
    "login mtp name netbios_dgm netbios_ns netbios_ssn netstat nnsp nntp ntp_u other pm_dump pop_2 pop_3 printer "
    "private red_i remote_job rje shell smtp sql_net ssh sunrpc supdup systat telnet tftp_u tim_i time urh_i urp_i "
    "uucp uucp_path vmnet whois"
)
_KDD = Schema(
    {
        "protocol_type": _list("tcp udp icmp", "rest"),
        "service": _list(_SERVICES, "rest"),
        "flag": _list("SF S0 REJ RSTR RSTO SH S1 S2 S3 RSTOS0 OTH", "rest"),
        **{name: Interval(0, high) for name, high in _COUNTS.items()},
        **{name: Interval(0, 1) for name in _FLAGS},
        **{f"{start}{name}_rate": Interval(0, 1) for start, names in _RATES.items() for name in names.split()},
    }
)
_DENIAL_OF_SERVICE = ("back", "land", "neptune", "pod", "smurf", "teardrop")
#: The 10 percent file holds a tenth of these kinds of the full file, and all records of every other kind.
_THINNED = ("normal", "neptune", "smurf", "satan", "ipsweep", "portsweep", "nmap")

SCHEMAS: dict[str, Schema] = {"adult": _ADULT, "kdd": _KDD}
#: File, label column, labels that count as +1.
FILES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "adult": ("adult", "income", (">50K",)),
    "kdd": ("kddcup99_10pct", "label", _DENIAL_OF_SERVICE),
}


@dataclass(frozen=True)
class Records:
    """Rows by `plain` coding (the paper's: [0, 1] and one-hot) and by this project's (`centred`); signs of labels.

    `twins` is the same number for records that are equal: most connections of KDD Cup 1999 are repeats.
    """

    schema: Schema
    plain: np.ndarray
    centred: np.ndarray
    signs: np.ndarray
    twins: np.ndarray

    @property
    def constant_error(self) -> float:
        """Of the better constant classifier."""
        share = float(np.mean(self.signs > 0))
        return min(share, 1 - share)


def read_records(name: str, rows: int | None, seed: int) -> Records:
    """`rows` random rows (None: all) in random order; for KDD Cup 1999 as if drawn from the full file."""
    file, target, positive = FILES[name]
    path = find(file)
    if path is None:
        raise DataError(
            f"The data set {file} was not found. Put {file}.parquet into ../shared/data beside the checkout, or set "
            "SFUMATO_DATA to the folder that holds it. Nothing was run."
        )
    schema = SCHEMAS[name]
    try:
        table = parquet.read_table(path, columns=[*schema.columns, target])
    except (pa.ArrowException, OSError, KeyError):
        raise DataError(
            f"{path} cannot be read as a Parquet file with the columns of {name}. Nothing was run."
        ) from None
    labels = table[target].cast(pa.string()).to_numpy()
    generator = np.random.default_rng(seed)
    order = generator.permutation(table.num_rows)
    if name == "kdd":
        order = order[np.isin(labels[order], _THINNED) | (generator.random(order.size) < 0.1)]
    order = order[:rows]
    table, signs = table.take(pa.array(order)), np.where(np.isin(labels[order], positive), 1.0, -1.0)
    features = table.drop_columns([target])
    plain = schema.encode(features)
    return Records(schema, plain, SchemaEncoder(schema).fit_transform(features), signs, twins_of(plain, signs))


def twins_of(rows: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """The same number for equal records, in order of first appearance."""
    known: dict[bytes, int] = {}
    digests = (
        md5(row.tobytes() + sign.tobytes(), usedforsecurity=False).digest()
        for row, sign in zip(rows, signs, strict=True)
    )
    return np.array([known.setdefault(digest, len(known)) for digest in digests])
