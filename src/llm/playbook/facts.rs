//! What the first step's output shows of the tables. The format is that of `python/load.py`.

use serde_json::{Map, Value};

/// What a column is, by its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Numbers to calculate with.
    Number,
    /// Years.
    Year,
    /// Dates.
    Date,
    /// Few distinct values.
    Category,
    /// A running number.
    Identifier,
    /// Free text.
    Text,
    /// No values at all.
    Empty,
}

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Values that are there.
    pub values: u64,
    /// Values that are missing.
    pub missing: u64,
    /// Distinct values.
    pub distinct: u64,
    /// The most frequent values of a category with their counts.
    pub top: Vec<(String, u64)>,
    /// The rest of its line, as printed.
    pub detail: String,
}

/// One table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Name of its file.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Columns, also those that were not shown.
    pub width: u64,
    /// Rows that repeat another.
    pub duplicates: u64,
    /// The shown columns.
    pub columns: Vec<Column>,
    /// Pairs of columns and their correlation, strongest first, as printed.
    pub correlations: Vec<(String, String, String)>,
}

impl Table {
    /// Columns of a kind, in order.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(move |column| column.kind == kind)
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// Everything that the output shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Tables, in order.
    pub tables: Vec<Table>,
    /// Files that are no tables, with what they are.
    pub others: Vec<(String, String)>,
}

impl Facts {
    /// Reads the output; lines that are not understood are passed over.
    pub fn of(stdout: &str) -> Self {
        let mut facts = Self::default();
        for line in stdout.lines() {
            if let Some(rest) = line.strip_prefix("Table ") {
                facts.tables.extend(table(rest));
            } else if let Some(rest) = line.strip_prefix("No table ") {
                if let Some((name, rest)) = leading_string(rest) {
                    facts.others.push((name, rest.trim_start_matches([':', ' ']).to_owned()));
                }
            } else if let Some(table) = facts.tables.last_mut() {
                if let Some(rest) = line.strip_prefix("- ") {
                    table.columns.extend(column(rest));
                } else if let Some(rest) = line.strip_prefix("Correlation ") {
                    table.correlations.extend(correlation(rest));
                }
            }
        }
        facts
    }
}

/// The JSON string that a line starts with, and the rest of the line.
fn leading_string(line: &str) -> Option<(String, &str)> {
    let mut values = serde_json::Deserializer::from_str(line).into_iter::<String>();
    let text = values.next()?.ok()?;
    let end = values.byte_offset();
    Some((text, &line[end..]))
}

fn table(line: &str) -> Option<Table> {
    let (name, rest) = leading_string(line)?;
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    Some(Table { name, rows: numbers.next()?, width: numbers.next()?, duplicates: numbers.next()?, ..Table::default() })
}

fn column(line: &str) -> Option<Column> {
    let (name, rest) = leading_string(line)?;
    let mut parts = rest.trim_start_matches(": ").splitn(5, ", ");
    let kind = match parts.next()? {
        "number" => Kind::Number,
        "year" => Kind::Year,
        "date" => Kind::Date,
        "category" => Kind::Category,
        "identifier" => Kind::Identifier,
        "text" => Kind::Text,
        "empty" => Kind::Empty,
        _ => return None,
    };
    let mut count = |unit: &str| parts.next()?.strip_suffix(unit)?.trim().parse::<u64>().ok();
    let (values, missing, distinct) = (count("values")?, count("missing")?, count("distinct")?);
    let detail = parts.next().unwrap_or_default().to_owned();
    let top = detail.strip_prefix("top ").and_then(|json| serde_json::from_str::<Map<String, Value>>(json).ok()).unwrap_or_default();
    let top = top.into_iter().filter_map(|(value, count)| Some((value, count.as_u64()?))).collect();
    Some(Column { name, kind, values, missing, distinct, top, detail })
}

fn correlation(line: &str) -> Option<(String, String, String)> {
    let (first, rest) = leading_string(line)?;
    let (second, rest) = leading_string(rest.trim_start_matches([' ', '/']))?;
    Some((first, second, rest.trim_start_matches([':', ' ']).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_columns_and_correlations_are_read() {
        let facts = Facts::of(
            "Table \"a, b.csv\": 150 rows, 3 columns, 1 duplicate rows\n\
             - \"x, \\\"y\\\"\": number, 149 values, 1 missing, 35 distinct, min 4.3, max 7.9, mean 5.84, median 5.8, sum 870.2\n\
             - \"种类\": category, 150 values, 0 missing, 2 distinct, top {\"甲, 乙\": 100, \"丙\": 50}\n\
             Correlation \"x\" / \"z\": -0.871\n\
             nonsense\n\
             No table \"c.txt\": str, size 12\n",
        );
        let table = &facts.tables[0];
        assert_eq!((table.name.as_str(), table.rows, table.width, table.duplicates), ("a, b.csv", 150, 3, 1));
        assert_eq!((table.columns[0].name.as_str(), table.columns[0].kind, table.columns[0].missing), ("x, \"y\"", Kind::Number, 1));
        assert_eq!(table.columns[1].top[0], ("甲, 乙".to_owned(), 100));
        assert_eq!(table.correlations[0], ("x".to_owned(), "z".to_owned(), "-0.871".to_owned()));
        assert_eq!(facts.others[0], ("c.txt".to_owned(), "str, size 12".to_owned()));
    }

    #[test]
    fn output_of_any_shape_is_survived() {
        for text in
            ["", "Table", "Table \"", "Table \"a\": x", "- \"a\": number", "Table \"a\": 1 rows, 1 columns, 0 d\n- \"b\": number, x values"]
        {
            let _ = Facts::of(text);
        }
    }
}
