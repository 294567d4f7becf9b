package targetspec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVarsFile(t *testing.T) {
	tests := map[string]struct {
		in   string
		want map[string]string
		err  string
	}{
		"yaml":          {in: "A: 1\nB: text\nC:\n", want: map[string]string{"A": "1", "B": "text", "C": ""}},
		"lines":         {in: "# values\nA=1\n\nexport B=\"a b\"\nC=x=y\nD=\n", want: map[string]string{"A": "1", "B": "a b", "C": "x=y", "D": ""}},
		"empty":         {in: "", want: map[string]string{}},
		"comments":      {in: "# nothing\n", want: map[string]string{}},
		"json":          {in: `{"A": "b=c"}`, want: map[string]string{"A": "b=c"}},
		"url in yaml":   {in: "URL: https://h/?a=b\n", want: map[string]string{"URL": "https://h/?a=b"}},
		"bad line":      {in: "A=1\nnonsense\n", err: "line 2: want KEY=VALUE"},
		"list":          {in: "- a\n", err: "want a mapping"},
		"nested":        {in: "A: {b: c}\n", err: "line 1: the value of A"},
		"twice":         {in: "A: 1\nA: 2\n", err: "line 2: A is given twice"},
		"no name":       {in: "a-b: 1\n", err: "not a valid name for a variable"},
		"broken":        {in: "A: [\n", err: "no valid YAML"},
		"alias refused": {in: "A: &a x\nB: *a\n", err: "line 2: the value of B"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "vars")
			write(t, file, tc.in)
			got, err := ReadVars(file)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("want an error with %q, got %v", tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestValuesOrder(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "A=1\nB=1\nC=1\n")
	write(t, filepath.Join(dir, "b"), "B=2\nC=2\n")
	target := Target{
		VarsFrom: []VarsFrom{{File: filepath.Join(dir, "a")}, {File: filepath.Join(dir, "b")}},
		Vars:     map[string]string{"C": "3"},
	}
	v, err := target.Values(ReadVars)
	got := v.Vars
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"A": "1", "B": "2", "C": "3"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	target.VarsFrom = append(target.VarsFrom, VarsFrom{File: filepath.Join(dir, "gone")})
	if _, err := target.Values(ReadVars); err == nil {
		t.Error("a missing file must be an error")
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
