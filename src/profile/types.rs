//! The shape of a profile, as `codeinterp profile --format json` prints it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A file's profile, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ProfileOutcome {
    /// The file can't be read as what it says it is.
    Failed {
        /// Name of the file as it was asked for.
        file: String,
        /// Why.
        error: ProfileError,
    },
    /// What is in the file.
    Profile(Box<Profile>),
}

impl ProfileOutcome {
    /// Name of the file.
    pub fn file(&self) -> &str {
        match self {
            Self::Failed { file, .. } => file,
            Self::Profile(profile) => &profile.file,
        }
    }

    /// The profile, where there is one.
    pub fn profile(&self) -> Option<&Profile> {
        match self {
            Self::Failed { .. } => None,
            Self::Profile(profile) => Some(profile),
        }
    }
}

/// Why a file has no profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileError {
    /// A stable word, for example `empty`, `encoding`, `corrupt`, `password`, `too_large`, `unsupported`.
    pub kind: String,
    /// What happened and where.
    pub message: String,
    /// What to do next.
    #[serde(default)]
    pub hint: String,
}

/// What is in a file. Fields that do not apply to the format are null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// Name of the file, relative to the working directory.
    pub file: String,
    /// `csv`, `tsv`, `xlsx`, `json`, `jsonl`, `parquet`, `image`, `text`, `unknown`, …
    pub format: String,
    /// Encoding by its Python name.
    pub encoding: Option<String>,
    /// Whether the file starts with a byte order mark.
    pub bom: Option<bool>,
    /// Field delimiter.
    pub delimiter: Option<String>,
    /// Quote character.
    pub quote: Option<String>,
    /// Decimal mark, `.` or `,`.
    pub decimal: Option<String>,
    /// Number of header lines.
    pub header_rows: Option<u64>,
    /// Lines before the header.
    pub preamble_lines: Option<u64>,
    /// Lines after the last data row that are not data.
    pub footer_lines: Option<u64>,
    /// Data rows without the header.
    pub rows: Option<u64>,
    /// Number of columns.
    pub columns: Option<u64>,
    /// As `DataFrame.duplicated().sum()` counts them.
    pub duplicate_rows: Option<u64>,
    /// Sheets of a workbook, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sheets: Option<Vec<Sheet>>,
    /// One entry a column.
    pub columns_detail: Vec<Column>,
    /// What the reader should know or was not sure of.
    pub warnings: Vec<String>,
    /// Python that loads the file into exactly this shape.
    pub load: Option<String>,
    /// Everything else that a format has to tell: `sample`, `width`, `height`, `tables`, …
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One column of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Column {
    /// Its name as the loaded table has it.
    pub name: String,
    /// Type name that the locked pandas gives.
    pub dtype: String,
    /// Missing cells.
    pub missing: u64,
    /// Missing cells in percent of the rows.
    pub missing_percent: f64,
    /// Distinct values, missing ones not counted.
    pub distinct: Option<u64>,
    /// False where [`Column::distinct`] is approximate.
    pub distinct_exact: Option<bool>,
    /// Smallest value: a number, or text for dates and strings.
    pub min: Value,
    /// Largest value.
    pub max: Value,
    /// Everything else: mean, quantiles, most frequent values, examples, notes.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One sheet of a workbook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sheet {
    /// Its name.
    pub name: String,
    /// Data rows.
    pub rows: Option<u64>,
    /// Columns.
    pub columns: Option<u64>,
    /// Everything else: used range, hidden.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
