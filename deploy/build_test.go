package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The build starts with a message, counts packages, and passes on Go's messages and exit code.
func TestBuildShowsItsProgress(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("sh is not installed")
	}
	const first = "Building weir with go1.99.\n"
	for name, c := range map[string]struct {
		packages, code int
		want           string
	}{
		"nothing to do": {0, 0, first},
		"a change":      {5, 0, first},
		"a fault":       {3, 1, first + "# github.com/weir-gitops/weir/source\nsource/a.go:3:1: syntax error\n"},
		"from nothing": {250, 0, first + "Go compiles up to 1234 packages: weir and its libraries, for example AWS's SDK and kustomize. The first time takes some minutes, later a few seconds.\n" +
			"  100 of 1234 packages\n  200 of 1234 packages\n"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := filepath.Join(t.TempDir(), "go")
			script := `#!/bin/sh
case $1 in
env) echo go1.99 ;;
list) seq 1234 ;;
build)
	test "$2 $3 $4" = "-v -o place" || exit 9
	seq -f "example.com/x-y_z/p%g" $PACKAGES >&2
	if [ $CODE != 0 ]; then printf '# github.com/weir-gitops/weir/source\nsource/a.go:3:1: syntax error\n' >&2; fi
	exit $CODE ;;
esac
`
			script = strings.NewReplacer("$PACKAGES", strconv.Itoa(c.packages), "$CODE", strconv.Itoa(c.code)).Replace(script)
			if err := os.WriteFile(fake, []byte(script), 0o700); err != nil { //nolint:gosec // it is executed
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "./build", "-o", "place")
			cmd.Env = append(os.Environ(), "GO="+fake)
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != c.code || string(out) != c.want {
				t.Errorf("exit code %d, %v, want %d\n%s", code, err, c.code, out)
			}
		})
	}
}
