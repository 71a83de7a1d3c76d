//! Every analytics tool, called as a client would, with its figures checked against SQL.

mod goods;
mod people;
mod sales;
