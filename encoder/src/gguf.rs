//! A GGUF file, version 3: what it says of itself, and where its tensors lie.
//! **Source:** the format's page in ggml, `docs/gguf.md`.

use std::collections::HashMap;

use crate::Error;

/// A tensor's kind of numbers: 32-bit.
const F32: u32 = 0;
/// 4-bit in blocks of 32 with a scale.
const Q4_0: u32 = 2;
/// What tensors' places are multiples of, where the file says nothing else.
const ALIGNMENT: usize = 32;

/// What a file says of itself; of arrays only texts and 32-bit numbers are kept.
pub(crate) enum Value {
    Whole(u64),
    Number(f32),
    Texts(Vec<String>),
    Numbers(Vec<f32>),
    Other,
}

struct TensorPlace {
    /// Rows last: as the file has it, the other way round.
    shape: Vec<usize>,
    kind: u32,
    start: usize,
}

/// A file that was looked through.
pub(crate) struct Gguf<'a> {
    bytes: &'a [u8],
    values: HashMap<String, Value>,
    tensors: HashMap<String, TensorPlace>,
}

impl<'a> Gguf<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader { bytes, at: 0 };
        if reader.take(4)? != b"GGUF" || reader.u32()? != 3 {
            return Err(Error::new("it is no GGUF file of version 3"));
        }
        let (n_tensors, n_values) = (reader.u64()?, reader.u64()?);
        let (mut values, mut tensors) = (HashMap::new(), HashMap::new());
        for _ in 0..n_values {
            let name = reader.text()?;
            let kind = reader.u32()?;
            values.insert(name, reader.value(kind)?);
        }
        for _ in 0..n_tensors {
            let name = reader.text()?;
            let n_dimensions = reader.u32()?;
            let shape = (0..n_dimensions).map(|_| reader.size()).collect::<Result<_, _>>()?;
            tensors.insert(name, TensorPlace { shape, kind: reader.u32()?, start: reader.size()? });
        }
        let data = reader.at.next_multiple_of(ALIGNMENT);
        for tensor in tensors.values_mut() {
            tensor.start = tensor.start.saturating_add(data);
        }
        Ok(Self { bytes, values, tensors })
    }

    pub(crate) fn whole(&self, name: &str) -> Result<usize, Error> {
        match self.values.get(name) {
            Some(Value::Whole(number)) => usize::try_from(*number).map_err(|error| Error(error.to_string())),
            _ => Err(missing(name)),
        }
    }

    pub(crate) fn number(&self, name: &str) -> Result<f32, Error> {
        match self.values.get(name) {
            Some(Value::Number(number)) => Ok(*number),
            _ => Err(missing(name)),
        }
    }

    pub(crate) fn texts(&self, name: &str) -> Result<&[String], Error> {
        match self.values.get(name) {
            Some(Value::Texts(texts)) => Ok(texts),
            _ => Err(missing(name)),
        }
    }

    pub(crate) fn numbers(&self, name: &str) -> Result<&[f32], Error> {
        match self.values.get(name) {
            Some(Value::Numbers(numbers)) => Ok(numbers),
            _ => Err(missing(name)),
        }
    }

    /// The file.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The numbers of a tensor, row by row.
    pub(crate) fn floats(&self, name: &str) -> Result<Vec<f32>, Error> {
        let tensor = self.tensors.get(name).filter(|tensor| tensor.kind == F32).ok_or_else(|| missing(name))?;
        let bytes = self.data(name, tensor.start, tensor.shape.iter().product::<usize>().saturating_mul(4))?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// Rows, columns and blocks of a matrix of 4-bit weights, row by row.
    pub(crate) fn matrix(&self, name: &str) -> Result<(usize, usize, &'a [u8]), Error> {
        let tensor = self.tensors.get(name).filter(|tensor| tensor.kind == Q4_0).ok_or_else(|| missing(name))?;
        let [n_columns, n_rows] = tensor.shape[..] else { return Err(missing(name)) };
        let size_bytes = n_rows.saturating_mul(n_columns / crate::q4::BLOCK).saturating_mul(crate::q4::BLOCK_BYTES);
        Ok((n_rows, n_columns, self.data(name, tensor.start, size_bytes)?))
    }

    fn data(&self, name: &str, start: usize, size_bytes: usize) -> Result<&'a [u8], Error> {
        self.bytes.get(start..start.saturating_add(size_bytes)).ok_or_else(|| missing(name))
    }
}

fn missing(name: &str) -> Error {
    Error(format!("`{name}` is missing or of another kind"))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], Error> {
        let taken =
            self.bytes.get(self.at..self.at.saturating_add(n)).ok_or_else(|| Error::new("it ends too early"))?;
        self.at += n;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        Ok(self.take(N)?.first_chunk().copied().unwrap_or([0; N]))
    }

    fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn size(&mut self) -> Result<usize, Error> {
        usize::try_from(self.u64()?).map_err(|error| Error(error.to_string()))
    }

    fn text(&mut self) -> Result<String, Error> {
        let size_bytes = self.size()?;
        Ok(String::from_utf8_lossy(self.take(size_bytes)?).into_owned())
    }

    /// Kinds of values by their numbers in the format.
    fn value(&mut self, kind: u32) -> Result<Value, Error> {
        let kept = |size: usize| move |reader: &mut Self| reader.take(size).map(|_| Value::Other);
        Ok(match kind {
            0 | 1 | 7 => kept(1)(self)?,
            2 | 3 => kept(2)(self)?,
            4 | 5 => Value::Whole(self.u32()?.into()),
            6 => Value::Number(f32::from_le_bytes(self.array()?)),
            8 => self.text().map(|_| Value::Other)?,
            9 => self.list()?,
            10 | 11 => Value::Whole(self.u64()?),
            12 => kept(8)(self)?,
            _ => return Err(Error::new("it has a value of an unknown kind")),
        })
    }

    fn list(&mut self) -> Result<Value, Error> {
        let (kind, n) = (self.u32()?, self.size()?);
        Ok(match kind {
            6 => Value::Numbers((0..n).map(|_| Ok(f32::from_le_bytes(self.array()?))).collect::<Result<_, Error>>()?),
            8 => Value::Texts((0..n).map(|_| self.text()).collect::<Result<_, Error>>()?),
            9 => return Err(Error::new("it has lists in lists")),
            other => {
                for _ in 0..n {
                    self.value(other)?;
                }
                Value::Other
            }
        })
    }
}
