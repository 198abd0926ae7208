//! The library that decodes Parquet, held back: it trusts what it reads.
//!
//! It panics over some tables that nobody damages by mistake, and a page of a few bytes that states gigabytes gets them.
//! So who asks is told which file a panic is of, and a page gets what its bytes can be unpacked to.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::ParquetError;
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{FileMetaData, FooterTail, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::serialized_reader::SerializedPageReader;

use super::{GROUP, footer};

thread_local! {
    /// The file that the library decodes in this thread just now.
    static DECODED: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// The file that is decoded in this thread just now: a panic is of the file then, and else of the program.
pub(crate) fn decoded_now() -> Option<PathBuf> {
    DECODED.with_borrow(Clone::clone)
}

/// Does what only the library has a part in.
fn decode<T>(path: &Path, work: impl FnOnce() -> T) -> T {
    struct Done;
    impl Drop for Done {
        fn drop(&mut self) {
            DECODED.take();
        }
    }
    DECODED.set(Some(path.to_owned()));
    let _done = Done;
    work()
}

fn wrong(what: &str) -> ParquetError {
    ParquetError::General(what.into())
}

/// A file of tables.
pub(crate) struct Decoder {
    path: PathBuf,
    file: Arc<File>,
    metadata: ParquetMetaData,
}

impl Decoder {
    /// Opens a file and reads what it says of itself.
    pub(crate) fn open(path: &Path) -> Result<Self, ParquetError> {
        let mut file = File::open(path)?;
        let footer = read_footer(&mut file)?;
        if !footer::has_what_it_states(&footer) {
            return Err(wrong("the footer states more than it has"));
        }
        let metadata = decode(path, || ParquetMetaDataReader::decode_metadata(&footer))?;
        Ok(Self { path: path.to_owned(), file: Arc::new(file), metadata })
    }

    pub(crate) fn metadata(&self) -> &FileMetaData {
        self.metadata.file_metadata()
    }

    /// How many rows each of its groups has.
    pub(crate) fn groups(&self) -> Result<Vec<usize>, ParquetError> {
        let lengths = self.metadata.row_groups().iter().map(|group| {
            let rows = usize::try_from(group.num_rows()).ok().filter(|&rows| rows <= GROUP);
            rows.ok_or_else(|| wrong("a group of rows has no possible length"))
        });
        lengths.collect()
    }

    /// What `read` makes of a column of a group.
    pub(crate) fn column<T>(
        &self,
        group: usize,
        column: usize,
        read: impl FnOnce(ColumnReader) -> Result<T, ParquetError>,
    ) -> Result<T, ParquetError> {
        decode(&self.path, || {
            let group = self.metadata.row_group(group);
            let chunk = group.column(column);
            if chunk.compression() != Compression::SNAPPY {
                return Err(wrong("a column is not packed as it was written"));
            }
            let packed = chunk.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
            let rows = usize::try_from(group.num_rows())?;
            let pages = SerializedPageReader::new(Arc::clone(&self.file), &packed, rows, None)?;
            read(get_column_reader(chunk.column_descr_ptr(), Box::new(Unpacked(pages))))
        })
    }
}

/// What a file says of itself: it stands before a length and four letters at the end.
fn read_footer(file: &mut File) -> Result<Vec<u8>, ParquetError> {
    let short = || wrong("the file is shorter than its footer");
    let length = file.metadata()?.len();
    let tail_at = length.checked_sub(FOOTER_SIZE as u64).ok_or_else(short)?;
    let mut tail = [0; FOOTER_SIZE];
    file.seek(SeekFrom::Start(tail_at))?;
    file.read_exact(&mut tail)?;
    let stated = FooterTail::try_new(&tail)?.metadata_length();
    file.seek(SeekFrom::Start(tail_at.checked_sub(stated as u64).ok_or_else(short)?))?;
    let mut footer = vec![0; stated];
    file.read_exact(&mut footer)?;
    Ok(footer)
}

/// The pages of a column. The library has not unpacked them: it takes as much memory as a page's header states.
struct Unpacked(SerializedPageReader<File>);

impl PageReader for Unpacked {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let Some(mut page) = self.0.get_next_page()? else { return Ok(None) };
        match &mut page {
            Page::DataPage { buf, encoding: Encoding::PLAIN | Encoding::RLE_DICTIONARY, .. } => {
                *buf = unpack(buf)?.into();
            }
            Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, .. } => {
                *buf = unpack(buf)?.into();
                // A text has its length before it, a number has eight bytes.
                if *num_values as usize > buf.len() / size_of::<u32>() {
                    return Err(wrong("a dictionary states more values than it has"));
                }
            }
            _ => return Err(wrong("a page is of no kind that is written here")),
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.0.skip_next_page()
    }
}

impl Iterator for Unpacked {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// Snappy repeats at most 64 bytes with three.
fn unpack(packed: &[u8]) -> Result<Vec<u8>, ParquetError> {
    let failed = |error: snap::Error| ParquetError::External(Box::new(error));
    if snap::raw::decompress_len(packed).map_err(failed)? / 64 > packed.len() / 3 {
        return Err(wrong("a page states more bytes than it has"));
    }
    snap::raw::Decoder::new().decompress_vec(packed).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_packs_best_is_unpacked_and_more_is_refused() {
        let repeated = vec![7; 1 << 20];
        let packed = snap::raw::Encoder::new().compress_vec(&repeated).expect("it fits");
        assert!(packed.len() < repeated.len() / 21, "it packs well: {}", packed.len());
        assert_eq!(unpack(&packed).expect("it is right"), repeated);
        // A length of 4 GiB.
        let error = unpack(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0]).expect_err("it has two bytes");
        assert!(error.to_string().contains("states more bytes than it has"), "{error}");
        assert!(unpack(&[]).is_err());
    }
}
