//! `ReassemblyConfig` (Python) → `Config` (core).

use fragtrack_core::config::{Checksum, Config, CostModel, Duplicates, Extent, Path, Policy, Reclaim};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Reads the attributes of a `fragtrack.config.ReassemblyConfig`, which has checked them.
pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Config> {
    let text = |name: &str| -> PyResult<String> { object.getattr(name)?.extract() };
    let policy_name = text("policy")?;
    let policy = Policy::ALL
        .iter()
        .find(|(name, _)| *name == policy_name)
        .map(|(_, policy)| *policy)
        .ok_or_else(|| unknown("policy", &policy_name))?;
    let path = choose("path", &text("path")?, &[("local", Path::Local), ("netfilter", Path::Netfilter)])?;
    let cost = choose("limits", &text("limits")?, &[("capture", CostModel::Capture), ("kernel", CostModel::Kernel)])?;
    let reclaims = [
        ("refuse", Reclaim::Refuse),
        ("lru", Reclaim::Lru),
        ("bucket-oldest", Reclaim::BucketOldest),
        ("fair", Reclaim::Fair),
    ];
    let duplicates = [("ignore", Duplicates::Ignore), ("discard", Duplicates::Discard)];
    let verify: bool = object.getattr("verify_checksum")?.extract()?;
    let key: u128 = match object.getattr("hash_key")?.extract::<Option<u128>>()? {
        Some(key) => key,
        // Drawn here, outside the core, which stays pure.
        None => {
            let drawn: Vec<u8> = object.py().import("os")?.call_method1("urandom", (16,))?.extract()?;
            drawn.first_chunk::<16>().map_or(0, |bytes| u128::from_le_bytes(*bytes))
        }
    };
    Ok(Config {
        policy,
        path,
        timeout4: object.getattr("timeout4_ns")?.extract()?,
        timeout6: object.getattr("timeout6_ns")?.extract()?,
        memory: object.getattr("memory_limit")?.extract()?,
        cost,
        max_dist: object.getattr("max_distance")?.extract()?,
        reclaim: choose("reclaim", &text("reclaim_name")?, &reclaims)?,
        checksum: if verify { Checksum::Verify } else { Checksum::Ignore },
        duplicates: choose("duplicates", &text("duplicates")?, &duplicates)?,
        extent: choose("extent", &text("extent")?, &[("piece", Extent::Piece), ("original", Extent::Original)])?,
        local: own_networks(&object.getattr("local")?)?,
        hash_key: (key as u64, (key >> 64) as u64),
    })
}

/// IPv4 networks as (address, mask); IPv6 ones never matter to the core.
fn own_networks(local: &Bound<'_, PyAny>) -> PyResult<Option<Vec<(u32, u32)>>> {
    let Some(texts) = local.extract::<Option<Vec<String>>>()? else { return Ok(None) };
    let make = local.py().import("ipaddress")?.getattr("ip_network")?;
    let mut networks = Vec::new();
    for text in texts {
        let network = make.call1((text,))?;
        if network.getattr("version")?.extract::<u8>()? == 4 {
            let number = |name: &str| -> PyResult<u32> { network.getattr(name)?.call_method0("__int__")?.extract() };
            networks.push((number("network_address")?, number("netmask")?));
        }
    }
    Ok(Some(networks))
}

fn choose<T: Copy>(what: &str, name: &str, choices: &[(&str, T)]) -> PyResult<T> {
    choices.iter().find(|(choice, _)| *choice == name).map(|(_, value)| *value).ok_or_else(|| unknown(what, name))
}

fn unknown(what: &str, name: &str) -> PyErr {
    PyValueError::new_err(format!("{what}: unknown value {name:?}"))
}
