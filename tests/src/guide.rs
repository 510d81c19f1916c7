//! The programs of the README and of the guide, which are doc tests of these modules.

macro_rules! pages {
    ($($module:ident $page:literal;)+) => {$(
        #[doc = include_str!(concat!("../../", $page))]
        mod $module {}
    )+};
}

pages! {
    readme "README.md";
    backends "docs/guide/backends.md";
    embedding "docs/guide/embedding.md";
    from_deepagents "docs/guide/from-deepagents.md";
    from_eino "docs/guide/from-eino.md";
    mounts_and_layers "docs/guide/mounts-and-layers.md";
    policy_and_approval "docs/guide/policy-and-approval.md";
    quickstart "docs/guide/quickstart.md";
    sandboxes "docs/guide/sandboxes.md";
    stores_at_scale "docs/guide/stores-at-scale.md";
    tools "docs/guide/tools.md";
}
