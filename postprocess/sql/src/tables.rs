// SPDX-License-Identifier: BSD-3-Clause
//! The tables of data sets: `DIR/TABLE/host=HOST/date=DATE/TRACE.parquet`. What several folders or files have of a
//! table is one table.
//!
//! Invariant: no trace counts twice, however often it is given: a file of the same name is the same trace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{anyhow, bail, ensure, Context, Result};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::prelude::SessionContext;
use glob::Pattern;
use kutrace_cli::say;
use url::Url;

use crate::said;

/// The tables there can be.
const TABLES: [&str; 10] =
    ["spans", "waits", "arcs", "points", "cpus", "threads", "durations", "requests", "causes", "traces"];
/// What the folders below a table say, outermost first: columns of every table.
const PARTS: [&str; 2] = ["host", "date"];

/// Where rows of a table are: all files of a folder, or the one of this name, which tells its trace from all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    folder: PathBuf,
    only: Option<String>,
}

/// Makes tables of all these folders and files; returns which there are.
///
/// # Errors
/// If there is none, or a file cannot be read.
pub async fn register(context: &SessionContext, files: &[PathBuf]) -> Result<Vec<&'static str>> {
    let mut places: BTreeMap<&str, BTreeSet<Place>> = BTreeMap::new();
    for file in files {
        let found = if file.is_dir() { within(file) } else { of_file(file).map(|found| vec![found]) };
        for (table, place) in found.with_context(|| file.display().to_string())? {
            places.entry(table).or_default().insert(place);
        }
    }
    let mut again = BTreeSet::new();
    for (table, places) in &mut places {
        let whole: BTreeSet<_> =
            places.iter().filter(|place| place.only.is_none()).map(|place| place.folder.clone()).collect();
        places.retain(|place| place.only.is_none() || !whole.contains(&place.folder));
        again.extend(once(places).with_context(|| format!("table {table}"))?);
        one(context, table, places).await.with_context(|| format!("table {table}"))?;
    }
    if let Some(first) = again.first() {
        let more = if again.len() > 1 { format!(", and {} more", again.len() - 1) } else { String::new() };
        say(format_args!("given more than once, and read once: trace {}{more}", first.trim_end_matches(".parquet")));
    }
    Ok(TABLES.into_iter().filter(|table| places.contains_key(table)).collect())
}

/// Leaves out files that are in a place before, too; returns their names.
fn once(places: &mut BTreeSet<Place>) -> Result<BTreeSet<String>> {
    let (mut known, mut again) = (BTreeSet::new(), BTreeSet::new());
    if places.len() < 2 {
        return Ok(again);
    }
    for place in std::mem::take(places) {
        let (old, new): (BTreeSet<_>, BTreeSet<_>) = names(&place)?.into_iter().partition(|name| known.contains(name));
        match old.is_empty() {
            true => drop(places.insert(place)),
            false => places.extend(new.iter().cloned().map(|only| Place { only: Some(only), ..place.clone() })),
        }
        known.extend(new);
        again.extend(old);
    }
    Ok(again)
}

/// The names of the files of a place.
fn names(Place { folder, only }: &Place) -> Result<BTreeSet<String>> {
    if let Some(only) = only {
        return Ok(BTreeSet::from([only.clone()]));
    }
    let files = format!("{}/*/*/*.parquet", Pattern::escape(&folder.to_string_lossy()));
    let name = |file: PathBuf| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    glob::glob(&files)?.map(|file| Ok(name(file?))).collect()
}

/// The tables of a data set. Canonical, so that none counts twice.
fn within(folder: &Path) -> Result<Vec<(&'static str, Place)>> {
    let mut found = Vec::new();
    for table in TABLES {
        let place = folder.join(table);
        if place.is_dir() {
            found.push((table, Place { folder: place.canonicalize()?, only: None }));
        }
    }
    ensure!(!found.is_empty(), "has no tables");
    Ok(found)
}

/// The table of a file, as the folders above it say.
fn of_file(file: &Path) -> Result<(&'static str, Place)> {
    let file = file.canonicalize()?;
    let folder = file.ancestors().nth(1 + PARTS.len()).filter(|_| file.extension().is_some_and(|end| end == "parquet"));
    let table = folder.and_then(|folder| TABLES.into_iter().find(|table| folder.ends_with(table)));
    let (Some(folder), Some(table)) = (folder, table) else {
        bail!("not a file of a table, as TABLE/host=HOST/date=DATE/TRACE.parquet is")
    };
    let only = file.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok((table, Place { folder: folder.to_owned(), only }))
}

async fn one(context: &SessionContext, table: &str, places: &BTreeSet<Place>) -> Result<()> {
    let wrong = |error| anyhow!(said(&error));
    let parts = PARTS.map(|part| (part.to_string(), DataType::Utf8)).to_vec();
    let options = ListingOptions::new(Arc::new(ParquetFormat::default()))
        .with_file_extension(".parquet")
        .with_table_partition_cols(parts);
    let mut urls = Vec::new();
    let mut columns = Vec::new();
    for Place { folder, only } in places {
        let url = Url::from_directory_path(folder).map_err(|()| anyhow!("{}: not a path", folder.display()))?;
        let only = only.as_ref().map(|name| Pattern::new(&Pattern::escape(name))).transpose()?;
        let url = ListingTableUrl::try_new(url, only).map_err(wrong)?;
        columns.push(options.infer_schema(&context.state(), &url).await.map_err(wrong)?.as_ref().clone());
        urls.push(url);
    }
    let all = Schema::try_merge(columns)?;
    // Where a file has such a column, that of the folders says the same.
    let own: Vec<_> = all.fields().iter().filter(|field| !PARTS.contains(&field.name().as_str())).cloned().collect();
    ensure!(!own.is_empty(), "it has no files");
    let config = ListingTableConfig::new_with_multi_paths(urls)
        .with_listing_options(options)
        .with_schema(Arc::new(Schema::new(own)));
    context.register_table(table, Arc::new(ListingTable::try_new(config).map_err(wrong)?)).map_err(wrong)?;
    Ok(())
}
