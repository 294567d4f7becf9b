package observed_test

import (
	"os/exec"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// A name is one word of a shell, whatever it holds.
func TestShellWord(t *testing.T) {
	for name, want := range map[string]string{"web-1.a/B": "web-1.a/B", "": "''", "a;b": "'a;b'", "it's": `'it'\''s'`, "$(touch x)": "'$(touch x)'", "~": "'~'", "wörk": "'wörk'"} {
		word := observed.ShellWord(name)
		if word != want {
			t.Errorf("%q is %s, want %s", name, word, want)
		}
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+word).Output(); err != nil || string(out) != name { //nolint:gosec // what is tested
			t.Errorf("a shell reads %s as %q, %v", word, out, err)
		}
	}
}
