package targetspec

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestValueFilesOfEveryDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"[a].dev.env", "[a].prod.env", "b.dev.env"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("A=b\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := VarsFrom{File: filepath.Join(dir, "[a].{1}.env")}.Files()
	if want := []string{filepath.Join(dir, "[a].dev.env"), filepath.Join(dir, "[a].prod.env")}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := (VarsFrom{File: "/x*"}).Files(); !slices.Equal(got, []string{"/x*"}) {
		t.Errorf("a name without placeholders: %q", got)
	}
}

// FuzzExpansion holds what directories may be called against what a target makes of
// it: no name leads to a row that is not written for it, or to a file elsewhere.
func FuzzExpansion(f *testing.F) {
	for _, s := range [][2]string{{"dev", "eu"}, {"..", "."}, {"a/b", "\x00"}, {"{2}", "{1}"}, {"dev-eu", ""}, {".", ".."}, {"dev", "eu\n"}} {
		f.Add(s[0], s[1])
	}
	target := Target{
		Name: "{1}-{2}", Path: "*/*", Key: "{1}/{2}", VarsFrom: []VarsFrom{{File: "/etc/weir/{1}{2}/{2}.env"}, {Path: "../{1}/{2}{1}/x"}}, KubeconfigFile: "/etc/kube/x{1}/{2}",
		Vars:  map[string]string{"A": "{1}", "B": "x{2}y{1}", "C": "plain"},
		Table: map[string]Row{"dev/eu": {Region: "eu-west-1", AccountID: "111111111111"}},
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		if strings.Contains(one+two, "/") || one == "" || two == "" {
			return // no part of a path is such
		}
		m := Match{Path: one + "/" + two, Texts: []string{one, two}}
		got := target.For(m)
		if (got != nil) != (one == "dev" && two == "eu") {
			t.Fatalf("%q and %q: %+v", one, two, got)
		}
		target := target
		target.Table = nil
		got = target.For(m)
		if got.Vars["A"] != one || got.Vars["B"] != "x"+two+"y"+one || got.Vars["C"] != "plain" {
			t.Errorf("vars: %q", got.Vars)
		}
		if p := got.VarsFrom[1].Path; path.Clean(p) != p || strings.Count(p, "/") != 3 || !strings.HasPrefix(p, "../") || strings.HasPrefix(p, "../../") {
			t.Errorf("%q and %q make the path %q", one, two, p)
		}
		for file, root := range map[string]string{got.VarsFrom[0].File: "/etc/weir/", got.KubeconfigFile: "/etc/kube/"} {
			if path.Clean(file) != file || !strings.HasPrefix(file, root) || strings.Count(file, "/") != 4 || strings.ContainsAny(file, "\x00\n") {
				t.Errorf("%q and %q make the file %q", one, two, file)
			}
		}
	})
}
