package renders

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func open(t *testing.T, dir string, log *strings.Builder) *Dir {
	t.Helper()
	return Open(dir, []byte("key"), slog.New(slog.NewTextHandler(log, nil)))
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestGetGivesWhatWasPut(t *testing.T) {
	var log strings.Builder
	path := filepath.Join(t.TempDir(), "renders")
	d, key := open(t, path, &log), sha256.Sum256([]byte("a"))
	if got := d.Get(t.Context(), "prod", key); got != nil {
		t.Errorf("before anything was put: %q", got)
	}
	d.Put(t.Context(), "prod", key, []byte("old"))
	d.Put(t.Context(), "prod", key, []byte("a render"))
	d.Put(t.Context(), "dev", key, []byte("another"))
	next := open(t, path, &log)
	if got := next.Get(t.Context(), "prod", key); string(got) != "a render" {
		t.Errorf("got %q", got)
	}
	for name, got := range map[string][]byte{
		"another key":    next.Get(t.Context(), "prod", sha256.Sum256([]byte("b"))),
		"another target": next.Get(t.Context(), "staging", key),
	} {
		if got != nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	other := Open(path, []byte("other"), d.log)
	if got := other.Get(t.Context(), "prod", key); got != nil {
		t.Errorf("with another key of the instance: %q", got)
	}
	next.program = func(context.Context) ([]byte, error) { return []byte("another"), nil }
	if got := next.Get(t.Context(), "prod", key); got != nil {
		t.Errorf("in another program: %q", got)
	}
	d.Put(t.Context(), "prod", key, nil)
	if got := d.Get(t.Context(), "prod", key); got != nil || len(names(t, path)) != 1 {
		t.Errorf("what was taken away: %q, %v", got, names(t, path))
	}
	if info, err := os.Stat(d.file("dev")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

// One target's file in the place of another's, a cut one, and one with a byte of another
// value give nothing.
func TestNothingElseIsGiven(t *testing.T) {
	var log strings.Builder
	path := t.TempDir()
	d, key := open(t, path, &log), sha256.Sum256([]byte("a"))
	d.Put(t.Context(), "prod", key, []byte("a render"))
	d.Put(t.Context(), "dev", key, []byte("of dev"))
	whole, err := os.ReadFile(d.file("prod"))
	if err != nil {
		t.Fatal(err)
	}
	dev, err := os.ReadFile(d.file("dev"))
	if err != nil {
		t.Fatal(err)
	}
	bad := [][]byte{nil, dev, append(bytes.Clone(whole), 0)}
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 1
		bad = append(bad, whole[:i], changed)
	}
	for _, b := range bad {
		if err := os.WriteFile(d.file("prod"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := d.Get(t.Context(), "prod", key); got != nil {
			t.Fatalf("of %q: %q", b, got)
		}
	}
}

func TestOnlyTheTargetsThatThereAre(t *testing.T) {
	var log strings.Builder
	path := t.TempDir()
	d, key := open(t, path, &log), sha256.Sum256([]byte("a"))
	for i := range 5 {
		d.Put(t.Context(), fmt.Sprint(i), key, []byte("a"))
	}
	if err := os.WriteFile(filepath.Join(path, ".render-1234"), []byte("left by a crash"), 0o600); err != nil {
		t.Fatal(err)
	}
	next := open(t, path, &log)
	next.Only([]string{"0", "3", "new"})
	if got := names(t, path); len(got) != 2 || next.Get(t.Context(), "0", key) == nil || next.Get(t.Context(), "3", key) == nil {
		t.Errorf("left are %v", got)
	}
	next.Only(nil)
	if got := names(t, path); len(got) != 0 || log.Len() > 0 {
		t.Errorf("left are %v; %s", got, log.String())
	}
}

// Where nothing can be written, that is said once, and all goes on.
func TestAFailureIsToldOnce(t *testing.T) {
	var log strings.Builder
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, file, &log)
	for i := range 3 {
		d.Put(t.Context(), fmt.Sprint(i), [32]byte{}, []byte("a"))
		d.Only(nil)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("told %d times: %s", n, log.String())
	}
	log.Reset()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	open(t, file, &log).Put(ended, "a", [32]byte{}, []byte("a"))
	if log.Len() > 0 {
		t.Errorf("of one that was told to end: %s", log.String())
	}
	d = open(t, t.TempDir(), &log)
	d.program = func(context.Context) ([]byte, error) { return nil, errors.New("no file") }
	d.Put(t.Context(), "a", [32]byte{}, []byte("a"))
	if got := d.Get(t.Context(), "a", [32]byte{}); got != nil {
		t.Errorf("without a program: %q", got)
	}
}

// Whatever else has a render's name gives nothing at once, and the next render takes its place
// where one can.
func TestOddFilesGiveNothing(t *testing.T) {
	for name, odd := range map[string]struct {
		make    func(file string) error
		replace bool
	}{
		"a named pipe": {func(file string) error { return syscall.Mkfifo(file, 0o600) }, true},
		"a link to a pipe": {func(file string) error {
			return errors.Join(syscall.Mkfifo(file+".pipe", 0o600), os.Symlink(file+".pipe", file))
		}, true},
		"a device":    {func(file string) error { return os.Symlink("/dev/zero", file) }, true},
		"a loop":      {func(file string) error { return os.Symlink(file, file) }, true},
		"a directory": {func(file string) error { return os.Mkdir(file, 0o700) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			d, key := open(t, t.TempDir(), &log), sha256.Sum256([]byte("a"))
			if err := odd.make(d.file("prod")); err != nil {
				if runtime.GOOS == "linux" {
					t.Fatal(err)
				}
				t.Skipf("%s does not support this kind of file: %v", runtime.GOOS, err)
			}
			got := make(chan []byte)
			go func() { got <- d.Get(t.Context(), "prod", key) }()
			select {
			case b := <-got:
				if b != nil {
					t.Errorf("%d bytes", len(b))
				}
			case <-time.After(10 * time.Second):
				t.Fatal("it hangs")
			}
			d.Put(t.Context(), "prod", key, []byte("a render"))
			if b := d.Get(t.Context(), "prod", key); (string(b) == "a render") != odd.replace {
				t.Errorf("afterwards %q: %s", b, log.String())
			}
		})
	}
}
