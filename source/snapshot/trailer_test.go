package snapshot_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// trailerTable says what Git 2.39 reads.
var trailerTable = map[string]string{
	"":                               "",
	"Key: the subject is no trailer": "",
	"s\nKey: nor is its paragraph":   "",
	"s\n\nKey: a":                    "Key: a\n",
	"\n \n\ns\n\nKey: a":             "Key: a\n",
	"s\r\n\r\nKey: a\r\n":            "Key: a\n",
	"s\n\nKey: a\nOther: b\n\n":      "Key: a\nOther: b\n",
	"s\n\nKey: a\n\nlast paragraph":  "",
	"s\n\n Key: not at the margin":   "",
	// Prose, and a quarter of trailers.
	"s\n\nTo lift it, write\nKey: a\nin the commit":                "",
	"s\n\nprose\nKey: a":                                           "",
	"s\n\nprose\nKey: a\nSigned-off-by: x":                         "Key: a\nSigned-off-by: x\n",
	"s\n\n1\n2\n3\nSigned-off-by: x":                               "Signed-off-by: x\n",
	"s\n\n1\n2\n3\n4\nSigned-off-by: x":                            "",
	"s\n\n1\n2\n3\n4\n5\n6\nKey: a\n(cherry picked from commit 1)": "Key: a\n",
	"s\n\nsigned-off-by: x\nprose":                                 "",
	// Folded lines.
	"s\n\nKey: a\n b\n\tc":                        "Key: a b c\n",
	"s\n\nKey:\n  a":                              "Key: a\n",
	"s\n\n folded\nKey: a":                        "",
	"s\n\nprose\n more\nKey: a\nSigned-off-by: x": "Key: a\nSigned-off-by: x\n",
	// Keys and separators.
	"s\n\nkEy : a":     "kEy: a\n",
	"s\n\nKey  two: a": "",
	"s\n\nKey\t: a: b": "Key: a: b\n",
	"s\n\nKey= a":      "",
	"s\n\nKey#1":       "",
	"s\n\nKéy: a":      "",
	"s\n\nKey_1: a":    "",
	"s\n\n: a":         "",
	"s\n\nhttp://x":    "http: //x\n",
	"s\n\nKey:":        "Key: \n",
	"s\n\n-: a":        "-: a\n",
	// Comments, conflicts, the scissors and the divider of mails.
	"s\n\nKey: a\n# comment\n\n#":                  "Key: a\n",
	"s\n\n# comment\nKey: a":                       "Key: a\n",
	"# c\n\ns\n\nKey: a":                           "Key: a\n",
	"s\n\nKey: a\n\nConflicts:\n\tfile\n\tother\n": "Key: a\n",
	"s\n\nKey: a\n# ------------------------ >8 ------------------------\nDiff: b\n": "Key: a\n",
	"s\n\nKey: a\n---\nprose":           "",
	"s\n\nKey: a\n\n---\n\nOther: b":    "Other: b\n",
	"s\n\nKey: a\n\n---------\n\nprose": "",
	"s\n\nKey: a\x00\n\nprose":          "Key: a\n",
}

func text(trailers []snapshot.Trailer) string {
	out := ""
	for _, t := range trailers {
		out += t.Key + ": " + t.Value + "\n"
	}
	return out
}

// gitsTrailers are what Git reads of each message, as a commit's.
func gitsTrailers(t *testing.T, messages []string) []string {
	t.Helper()
	repo := sourcetest.New(t)
	tree := repo.Git("mktree", "-z")
	var input bytes.Buffer
	for i, m := range messages {
		// The number keeps commits of one message apart.
		commit := fmt.Sprintf("tree %s\nauthor A <a@b> %d +0000\ncommitter A <a@b> %d +0000\n\n%s", tree, i+1, i+1, m)
		input.WriteString(repo.GitInput([]byte(commit), "hash-object", "-t", "commit", "-w", "--stdin", "--literally") + "\n")
	}
	out := repo.GitInput(input.Bytes(), "log", "--stdin", "--no-walk=unsorted", "--encoding=none", "--format=%x01%(trailers:only,unfold)")
	var all []string
	for _, one := range strings.Split(out, "\x01")[1:] {
		all = append(all, strings.TrimRight(one, "\n"))
	}
	return all
}

func TestTrailers(t *testing.T) {
	var messages []string
	for message, want := range trailerTable {
		if diff := cmp.Diff(want, text(snapshot.Trailers(message))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", message, diff)
		}
		messages = append(messages, message)
	}
	for i, got := range gitsTrailers(t, messages) {
		// Git trims the end of its output, even the space before an empty value.
		if diff := cmp.Diff(strings.TrimRight(trailerTable[messages[i]], " \n"), strings.TrimRight(got, " ")); diff != "" {
			t.Errorf("Git reads %q otherwise (-table +git):\n%s", messages[i], diff)
		}
	}
}

// Git is asked about messages made of what it looks at.
func TestTrailersAreGits(t *testing.T) {
	parts := []string{
		"s", "prose", "Key: a", "KEY : b", "Weir-Allow-Prune: a", "Signed-off-by: x", "(cherry picked from commit 1)", "\n", "\n", "\n", "\n\n", "\n\n",
		"\n\n", " ", "\t", "\r\n", "#", "# c", "---", "--- ", "Conflicts:\n", "\tfile", ":", "=", "Key:", "a: b: c", "é: a", "-", "0: 1", "\x0b", "\x0c", "\xff",
		"# ------------------------ >8 ------------------------\n", "\n# ------------------------ >8 ------------------------\nDiff: c",
	}
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // A test that repeats itself.
	var messages []string
	for range 1500 {
		m := ""
		for range 1 + r.IntN(16) {
			m += parts[r.IntN(len(parts))]
			if r.IntN(2) == 0 {
				m += "\n"
			}
		}
		messages = append(messages, m)
	}
	some := 0
	for i, want := range gitsTrailers(t, messages) {
		got := text(snapshot.Trailers(messages[i]))
		if got != "" {
			some++
		}
		if strings.TrimRight(got, "\n") != want {
			t.Fatalf("%q: Git reads %q, weir %q", messages[i], want, got)
		}
	}
	if some < 100 {
		t.Errorf("only %d messages have trailers", some)
	}
}

// FuzzTrailers asks Git's own command.
func FuzzTrailers(f *testing.F) {
	for message := range trailerTable {
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message string) {
		got := text(snapshot.Trailers(message))
		cmd := exec.Command("git", "interpret-trailers", "--parse", "--no-divider")
		cmd.Env, cmd.Dir = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "PATH=" + os.Getenv("PATH")}, t.TempDir()
		cmd.Stdin = strings.NewReader(strings.TrimLeft(strings.SplitN(message, "\x00", 2)[0], " \t\r\n"))
		want, err := cmd.Output()
		if err != nil {
			t.Skip(err)
		}
		if got != string(want) {
			t.Errorf("%q: Git reads %q, weir %q", message, want, got)
		}
	})
}
