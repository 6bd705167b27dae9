use proptest::prelude::*;

use super::*;
use crate::testing::{Ng, any_order, pcap_header, variants};

proptest! {
    #[test]
    fn a_description_is_turned_there_and_back(from in any_order(), snaplen: u32, link in 0..400_u16) {
        let other = if from == Order::Little { Order::Big } else { Order::Little };
        let options: &[(u16, &[u8])] = &[(2, b"eth0"), (9, &[9]), (14, &[1, 2, 3, 4, 5, 6, 7, 8]), (8, &[7; 8])];
        let file = Ng::new(from).interface(link, snaplen, options).data;
        let mut first = Origin::section(from);
        first.describe(&file[28..]).unwrap();
        let mut turned = Vec::new();
        first.write_description(0, other, &mut turned);
        let mut second = Origin::section(other);
        second.describe(&turned).unwrap();
        let (a, b) = (first.interface(0).unwrap(), second.interface(0).unwrap());
        prop_assert_eq!((a.link, a.snaplen, a.resolution, a.offset), (b.link, b.snaplen, b.resolution, b.offset));
        let mut back = Vec::new();
        second.write_description(0, from, &mut back);
        prop_assert_eq!(&back, &file[28..]);
    }
}

#[test]
fn every_magic_names_its_variant() {
    for pcap in variants() {
        let header = pcap_header(pcap, 0x1234_0071, 300_000);
        assert_eq!(Pcap::of(*header.first_chunk().unwrap()), Some(pcap));
        let origin = Origin::pcap(pcap, *header.first_chunk().unwrap());
        assert_eq!(origin.interface(0).unwrap().link, LinkType(0x71), "bits above are no link type");
        assert_eq!((origin.record_limit(), origin.order()), (300_000, pcap.order));
    }
    assert_eq!(Pcap::of([0xa1, 0xb2, 0xc3, 0xd5]), None);
}

#[test]
fn a_record_limit_stays_in_bounds() {
    let limit = |snaplen| {
        let header = pcap_header(crate::testing::CLASSIC, 1, snaplen);
        Origin::pcap(crate::testing::CLASSIC, *header.first_chunk().unwrap()).record_limit()
    };
    assert_eq!([0, 262_144, 262_145, u32::MAX].map(limit), [262_144, 262_144, 262_145, MAX_BLOCK]);
}

#[test]
fn interfaces_are_remembered_up_to_a_limit() {
    let block = Ng::new(Order::Big).interface(1, 5, &[]).data.split_off(28);
    let mut origin = Origin::section(Order::Big);
    for _ in 0..MAX_INTERFACES {
        origin.describe(&block).unwrap();
    }
    assert_eq!(origin.describe(&block), Err(()));
    assert_eq!(origin.interfaces().len(), MAX_INTERFACES as usize);
}

#[test]
fn interface_bytes_are_remembered_up_to_a_limit() {
    let large = Ng::new(Order::Big).interface(1, 5, &[(1, &[b'x'; 65_000])]).data.split_off(28);
    let small = Ng::new(Order::Big).interface(1, 5, &[]).data.split_off(28);
    let mut origin = Origin::section(Order::Big);
    while origin.describe(&large).is_ok() {}
    let known = origin.interfaces().len();
    assert_eq!(known, MAX_BLOCK as usize / large.len());
    assert_eq!(origin.describe(&small), Err(()), "its number would be wrong");
    assert_eq!(origin.interfaces().len(), known);
}

#[test]
fn a_cut_description_takes_a_number() {
    let mut origin = Origin::section(Order::Little);
    origin.describe(&Ng::new(Order::Little).block(1, &[1, 0, 0, 0]).data[28..]).unwrap();
    let interface = origin.interface(0).unwrap();
    assert_eq!((interface.described, interface.mark()), (false, LinkType::NONE));
    let whole = Ng::new(Order::Little).interface(0xffff, 0, &[]).data;
    origin.describe(&whole[28..]).unwrap();
    assert_ne!(origin.interface(1).unwrap().mark(), LinkType::NONE, "an odd link type is not none");
}

#[test]
fn origins_keep_their_numbers() {
    let mut origins = Origins::new();
    let numbers: Vec<u32> = (0..5).map(|_| origins.add(Origin::section(Order::Big))).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    origins.retain(|number| number == 1 || number > 2);
    origins.forget(4);
    origins.forget(0);
    let known: Vec<u32> = (0..9).filter(|number| origins.at(*number).is_some()).collect();
    assert_eq!((known, origins.count()), (vec![1, 3], 2));
    assert!(origins.at_mut(4).is_none());
    assert_eq!((origins.next(), origins.add(Origin::section(Order::Big))), (5, 5));
}
