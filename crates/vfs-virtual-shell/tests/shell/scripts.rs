//! Scripts with their expected output.

use std::sync::Arc;

use vfs_composite::CompositeBackend;
use vfs_core::{Backend, BackendExt};
use vfs_memory::MemoryBackend;

use crate::support::{in_memory, over, path, run};

/// Command line, its standard output, and its exit code.
const SCRIPTS: &[(&str, &str, i32)] = &[
    ("echo hello", "hello\n", 0),
    ("true", "", 0),
    ("false", "", 1),
    ("exit 3", "", 3),
    ("nothing-of-that-name", "", 127),
    ("printf '%s-%s\\n' a b", "a-b\n", 0),
    // Pipes.
    ("cat fruit | sort | head -n 2", "apple\nbanana\n", 0),
    ("sort fruit | uniq -c | sort -rn | head -n1 | awk '{print $2}'", "pear\n", 0),
    ("grep -c pear fruit", "2\n", 0),
    ("grep -n ^b fruit", "4:banana\n", 0),
    ("grep missing fruit", "", 1),
    ("grep -q missing fruit || echo none", "none\n", 0),
    ("wc -l < fruit", "4\n", 0),
    ("set -o pipefail; false | true", "", 1),
    ("echo $(($(seq 5 | paste -sd+)))", "15\n", 0),
    ("tac fruit | tail -n 1", "pear\n", 0),
    ("tr a-z A-Z < fruit | head -n1", "PEAR\n", 0),
    ("cut -d, -f2 table.csv", "name\nada\nbob\n", 0),
    ("awk -F, 'NR > 1 { total += $3 } END { print total }' table.csv", "42\n", 0),
    ("sed -n '2p' fruit; sed 's/pear/plum/' fruit | head -n1", "apple\nplum\n", 0),
    ("find . -name '*.rs' | sort", "./src/lib.rs\n./src/main.rs\n", 0),
    ("find src -type f | xargs grep -l fn | sort", "src/lib.rs\nsrc/main.rs\n", 0),
    ("ls src", "lib.rs\nmain.rs\n", 0),
    ("diff fruit fruit && echo same", "same\n", 0),
    // Redirections.
    ("echo one > new; echo two >> new; cat new", "one\ntwo\n", 0),
    ("echo kept > new; echo over > new; cat new", "over\n", 0),
    ("echo deep > a/b/c; cat a/b/c; ls a", "deep\nb\n", 0),
    ("ls missing 2> err; cat err | grep -c 'No such file'", "1\n", 0),
    ("{ echo out; echo err >&2; } > both 2>&1; cat both", "out\nerr\n", 0),
    ("echo x > /dev/null; cat /dev/null; cat < /dev/null; echo $?", "0\n", 0),
    ("cat < missing", "", 1),
    ("echo x > src", "", 1),
    ("for i in 1 2 3; do echo $i; done > numbers; wc -l < numbers", "3\n", 0),
    ("echo a b c | tee copy | wc -w; cat copy", "3\na b c\n", 0),
    ("exec 3> log; echo x >&3; exec 3>&-; cat log", "x\n", 0),
    ("sed -i 's/banana/cherry/' fruit; grep -c cherry fruit", "1\n", 0),
    // Here-documents and here-strings.
    ("cat <<EOF\n$((1 + 2))\nEOF", "3\n", 0),
    ("cat <<'EOF'\n$HOME\nEOF", "$HOME\n", 0),
    ("cat <<-EOF > doc\n\tindented\n\tEOF\ncat doc", "indented\n", 0),
    ("read -r a b <<< 'x y'; echo $b", "y\n", 0),
    // Globs and braces.
    ("echo src/*.rs", "src/lib.rs src/main.rs\n", 0),
    ("echo *.nothing", "*.nothing\n", 0),
    ("for f in src/*; do basename $f .rs; done", "lib\nmain\n", 0),
    ("echo {a,b}{1,2}", "a1 a2 b1 b2\n", 0),
    ("shopt -s globstar; echo **/*.rs", "src/lib.rs src/main.rs\n", 0),
    // Variables, functions, conditions, loops.
    ("x=1; x=$((x + 1)); echo \"$x\" '$x'", "2 $x\n", 0),
    ("f() { local n=$1; echo $((n * 2)); return 4; }; f 21; echo $?", "42\n4\n", 0),
    ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); [ $i = 2 ] && continue; echo $i; done", "1\n3\n", 0),
    ("case foo.rs in *.rs) echo rust;; *) echo other;; esac", "rust\n", 0),
    ("if [[ -f fruit && ! -d fruit ]]; then echo file; fi", "file\n", 0),
    ("a=(x y z); echo ${#a[@]} ${a[1]}", "3 y\n", 0),
    ("declare -A m; m[k]=v; echo ${m[k]}", "v\n", 0),
    ("s=hello.txt; echo ${s%.txt} ${s/l/L} ${#s} ${none:-default}", "hello heLlo.txt 9 default\n", 0),
    ("echo $(echo $(echo nested))", "nested\n", 0),
    ("diff <(echo a) <(echo a) && echo same", "same\n", 0),
    ("(cd src; pwd); pwd", "/src\n/\n", 0),
    ("cd src && ls | head -n1; cd ..; cd -", "lib.rs\n/src\n", 0),
    ("cd missing", "", 1),
    ("cd fruit", "", 1),
    // Failures.
    ("set -e; false; echo not reached", "", 1),
    ("set -u; echo $unset; echo not reached", "", 1),
    ("trap 'echo bye' EXIT; echo hi", "hi\nbye\n", 0),
    ("false; echo $?", "1\n", 0),
    ("! true", "", 1),
    ("kill -9 $$; echo gone", "", 137),
    ("echo 'echo from $0 $1' > s.sh; bash s.sh x; chmod +x s.sh; ./s.sh y", "from s.sh x\nfrom ./s.sh y\n", 0),
    ("echo 'v=7' > lib.sh; . ./lib.sh; echo $v", "7\n", 0),
    // Move, copy, remove, directories.
    ("mv fruit basket; ls fruit; cat basket | wc -l", "4\n", 0),
    ("cp fruit copy && cmp fruit copy && echo equal", "equal\n", 0),
    ("cp -r src dst; ls dst", "lib.rs\nmain.rs\n", 0),
    ("mv src moved; ls moved; ls src", "lib.rs\nmain.rs\n", 2),
    ("rm fruit; ls fruit", "", 2),
    ("rm missing", "", 1),
    ("rm -f missing", "", 0),
    ("rm src", "", 1),
    ("rm -r src; ls", "fruit\ntable.csv\n", 0),
    ("rmdir src", "", 1),
    ("mkdir d; cd d; pwd; ls -A; cd ..; rmdir d; ls d", "/d\n", 2),
    ("mkdir d; mkdir d", "", 1),
    ("mkdir x/y", "", 1),
    ("mkdir -p x/y/z; touch x/y/z/f; find x | sort", "x\nx/y\nx/y/z\nx/y/z/f\n", 0),
    ("mkdir -p build; touch build/a; rm build/*; cp fruit build/; ls build", "fruit\n", 0),
    ("mkdir d; mv fruit d/; ls d", "fruit\n", 0),
    ("mkdir d; mv d e; ls -d e; ls -d d", "e\n", 2),
    ("touch new; [ -e new ] && [ ! -s new ] && echo empty; touch fruit; wc -l < fruit", "empty\n4\n", 0),
    ("rm -rf src/*; cp fruit src/; ls src", "fruit\n", 0),
    ("ln -s fruit link", "", 1),
    ("mktemp -d > name; [ -d $(cat name) ] && echo made", "made\n", 0),
    ("tar cf t.tar src && rm -r src && tar xf t.tar && ls src", "lib.rs\nmain.rs\n", 0),
    ("gzip -k fruit && zcat fruit.gz 2>/dev/null | head -n1; gunzip -c fruit.gz | head -n1", "pear\n", 0),
    ("sleep 0.01 & wait; echo done", "done\n", 0),
];

async fn fill(files: &dyn Backend) {
    for (at, text) in [
        ("/fruit", "pear\napple\npear\nbanana\n"),
        ("/table.csv", "id,name,points\n1,ada,40\n2,bob,2\n"),
        ("/src/lib.rs", "fn lib() {}\n"),
        ("/src/main.rs", "fn main() {}\n"),
    ] {
        files.create_text(at, text).await.expect("a new file");
    }
}

async fn check(make: impl AsyncFn() -> Arc<dyn Backend>, is_meant: impl Fn(&str) -> bool) {
    let mut wrong = Vec::new();
    for (script, stdout, code) in SCRIPTS.iter().filter(|(script, _, _)| is_meant(script)) {
        let files = make().await;
        let answer = run(&*files, script).await;
        if (answer.stdout.as_str(), answer.exit_code) != (*stdout, Some(*code)) {
            wrong.push(format!("{script}\n  {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_match_the_results_of_bash() {
    let make = async || {
        let files = in_memory();
        fill(&files).await;
        Arc::new(files) as Arc<dyn Backend>
    };
    check(make, |_| true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_give_the_same_results_across_mounts() {
    let make = async || {
        let mounts = CompositeBackend::new(Arc::new(MemoryBackend::new()));
        mounts.mount(path("/src"), Arc::new(MemoryBackend::new())).expect("a mount point");
        let files = over(mounts);
        fill(&files).await;
        Arc::new(files) as Arc<dyn Backend>
    };
    // A mount point cannot be moved.
    check(make, |script| !script.contains("mv src") && !script.contains("rm -r src")).await;
}
