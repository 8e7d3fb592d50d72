//! What further servers on one PostgreSQL cost: gate cycles over HTTP with one server, with an idle one beside it, and
//! with three busy servers, in turn in the same run.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::cycles::{forget, round_of_cycles};
use crate::report::Row;
use crate::server::{Data, Server};
use crate::{Options, median, share_of};

/// The target for one server beside an idle one, as a share of its cycles when it is alone.
const BESIDE_IDLE: f64 = 0.95;
/// The target for three busy servers together, as a share of the same cycles.
const THREE_BUSY: f64 = 1.0;

/// The measured setups: how many servers run, and how many of them have clients.
const SHAPES: [(usize, usize); 3] = [(1, 1), (2, 1), (3, 3)];

/// Measures the cycles of a server beside an idle one, and of three busy ones, as shares of a lone server's.
pub async fn on_one_database(options: &Options, admin: &str) -> Result<[Row; 2]> {
    let mut first = Data::new(Some(admin)).await?;
    drop(Server::start(&options.binary, &mut first).await?);
    let [second, third] = [first.of_another_server()?, first.of_another_server()?];
    let mut data = [first, second, third];
    let length = Duration::from_secs(options.seconds);
    let mut figures = [const { Vec::new() }; 3];
    for round in 0..=options.rounds {
        let mut shapes = [0, 1, 2];
        shapes.rotate_left(round % SHAPES.len());
        for shape in shapes {
            let (running, busy) = SHAPES[shape];
            let mut servers = Vec::new();
            for data in &mut data[..running] {
                servers.push(Server::start(&options.binary, data).await?);
            }
            // Afterwards, work that follows a start, such as sealing, is done, and connections are open.
            round_of_cycles(&servers[..busy], Duration::from_secs(1)).await?;
            let cycles = round_of_cycles(&servers[..busy], length).await?;
            // The first round warms caches and is not counted.
            if round > 0 {
                figures[shape].push(cycles);
            }
        }
    }
    forget(admin, [Some(data[0].database().context("no database")?), None]).await?;
    let [one, beside_idle, three] = figures.map(median);
    Ok([
        share_of("servers_beside_an_idle_one", beside_idle, "cycles/s", one, BESIDE_IDLE),
        share_of("servers_three_busy", three, "cycles/s", one, THREE_BUSY),
    ])
}
