//! Creation and modification times of values.

use chrono::{DateTime, TimeDelta, Utc};
use vfs_store::{ListRequest, NewValue, Precondition, TimestampSource};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{done, key, moment, path, value};

store_laws! { "times":
    "ST1" Nothing a_time_is_stored_to_the_microsecond,
    "ST2" Nothing only_fractions_of_a_microsecond_may_be_lost,
    "ST3" StoredTimes a_listing_has_both_times,
    "ST4" Nothing a_value_has_the_times_of_its_last_change,
}

/// Returns times from the distant past to the distant future.
fn times() -> Vec<DateTime<Utc>> {
    let of = |seconds, nanoseconds| DateTime::from_timestamp(seconds, nanoseconds).expect("it is a time");
    vec![
        of(0, 0),
        of(0, 1_000),
        of(-1, 999_999_000),
        of(-5_000_000_000, 1_000),
        of(951_782_400, 500_000_000),
        of(2_147_483_648, 999_999_000),
        of(4_294_967_296, 7_000),
        of(32_503_679_999, 999_999_000),
        moment(0),
    ]
}

async fn both_times(t: &StoreTarget, created_at: DateTime<Utc>) -> vfs_core::Result<[DateTime<Utc>; 2]> {
    let changed = created_at + TimeDelta::microseconds(1_000_001);
    let new = NewValue::new("x".into(), changed).created_at(created_at);
    done(t.store.put(&key("/a"), new, &Precondition::Any).await?);
    let stored = t.head("/a").await?.expect("it is there");
    let created = stored.created_at.expect("there is a creation time");
    assert_eq!(t.store.get(&key("/a"), None).await?.expect("it is there").stored, stored);
    // A store that sets the times itself may return them here, too.
    let modified =
        if t.store.capabilities().timestamps == TimestampSource::Caller { stored.modified_at } else { changed };
    Ok([created, modified - TimeDelta::microseconds(1_000_001)])
}

/// Whole microseconds are stored exactly, in the distant past and future.
async fn a_time_is_stored_to_the_microsecond(t: &StoreTarget) -> LawResult {
    for time in times() {
        assert_eq!(both_times(t, time).await?, [time, time]);
    }
    Ok(())
}

/// A store may truncate or round fractions of a microsecond.
async fn only_fractions_of_a_microsecond_may_be_lost(t: &StoreTarget) -> LawResult {
    for time in times().into_iter().flat_map(|time| [1, 499, 500, 999].map(|more| time + TimeDelta::nanoseconds(more)))
    {
        for stored in both_times(t, time).await? {
            assert!((stored - time).abs() < TimeDelta::microseconds(1), "{time:?} became {stored:?}");
        }
    }
    Ok(())
}

/// A listing has the same times as `head`.
async fn a_listing_has_both_times(t: &StoreTarget) -> LawResult {
    for (n, time) in times().into_iter().enumerate() {
        let new = NewValue::new("x".into(), time).created_at(time - TimeDelta::microseconds(1));
        done(t.store.put(&key(&format!("/d/{n}")), new, &Precondition::Absent).await?);
    }
    for request in [ListRequest::all(path("/")), ListRequest::level(path("/d"))] {
        let listing = t.list(request).await?;
        assert_eq!(listing.entries.len(), times().len());
        for entry in listing.entries {
            assert_eq!(Some(entry.stored), t.head(entry.path.as_str()).await?, "{}", entry.path);
        }
    }
    Ok(())
}

/// A store does not carry the creation time over: each change sets it.
async fn a_value_has_the_times_of_its_last_change(t: &StoreTarget) -> LawResult {
    t.put("/a", "first").await?;
    let second = NewValue::new("second".into(), moment(100)).created_at(moment(50));
    done(t.store.put(&key("/a"), second, &Precondition::Any).await?);
    let stored = t.head("/a").await?.expect("it is there");
    assert_eq!(stored.created_at, Some(moment(50)));
    assert!(
        t.store.capabilities().timestamps == TimestampSource::Store || stored.modified_at == moment(100),
        "{stored:?}"
    );
    let earlier = value("second");
    done(t.store.put(&key("/a"), earlier, &Precondition::Any).await?);
    assert_eq!(t.head("/a").await?.expect("it is there").created_at, Some(moment(0)));
    Ok(())
}
