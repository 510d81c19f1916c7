//! Operating-system sandbox: commands in namespaces, under Landlock and a system call filter.

pub mod os;
