package upload

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/git"
)

// Unpacking gives the files that were packed, with the names that Git has for them.
func TestATreeArrivesAsItWasSent(t *testing.T) {
	sent := tree.Map{"base/pool.yaml": "a: b\n", "overlays/prod/kustomization.yaml": "resources: [../../base]\n", "overlays/link": "symlink:prod", "README": "", "ä/x y": "1"}
	a, err := Pack(sent)
	if err != nil || a.Files != len(sent) || len(a.Left) > 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	got, err := Unpack(bytes.NewReader(a.Data))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range append(slices.Collect(maps.Keys(sent)), ".", "base", "overlays", "overlays/prod", "nothing", "base/nothing", "README/x") {
		want, wantErr := sent.Lookup(p)
		have, err := got.Lookup(p)
		if (err == nil) != (wantErr == nil) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want %v", p, err, wantErr)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: %s", p, diff)
		}
		if err != nil {
			continue
		}
		if have.Mode != tree.Dir {
			text, err := got.ReadFile(p)
			want, _ := sent.ReadFile(p)
			if err != nil || !bytes.Equal(text, want) {
				t.Errorf("%s: %q, %v", p, text, err)
			}
			if _, err := got.ReadDir(p); err == nil {
				t.Errorf("%s is listed", p)
			}
			continue
		}
		list, err := got.ReadDir(p)
		want2, _ := sent.ReadDir(p)
		if diff := cmp.Diff(want2, list); diff != "" || err != nil {
			t.Errorf("%s: %v %s", p, err, diff)
		}
		if _, err := got.ReadFile(p); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is read: %v", p, err)
		}
	}
}

func TestWhatIsNotSent(t *testing.T) {
	t.Parallel()
	noise := make([]byte, MaxPacked/8)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	many, big, loud := tree.Map{}, tree.Map{}, tree.Map{}
	for i := range 40 {
		big[fmt.Sprint(i)] = strings.Repeat("x", 1<<20)
		loud[fmt.Sprint(i%12)] = string(noise[i:])
	}
	for name, c := range map[string]struct {
		tree tree.Tree
		says string
	}{
		"a link out":      {tree.Map{"a/b": "symlink:../../etc/passwd"}, "the symlink a/b leads out of the work tree"},
		"an absolute one": {tree.Map{"b": "symlink:/etc/passwd"}, "the symlink b leads out"},
		"to the root":     {tree.Map{"a/b": "symlink:.."}, ""},
		"many files":      {crowd{many, maxFiles + 1}, "more than 20000 files"},
		"large files":     {big, "its files are larger than 32 MiB"},
		"noise":           {loud, "MiB compressed, and the limit is 8 MiB"},
		"a long path":     {tree.Map{strings.Repeat("a/", 600) + "b": "x"}, "a path has more than 1024 bytes"},
		"a deep path":     {tree.Map{strings.Repeat("a/", 130) + "b": "x"}, "more than 128 directories"},
	} {
		a, err := Pack(c.tree)
		var wrong *Error
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.says != "" && (!errors.As(err, &wrong) || !strings.Contains(wrong.Message, c.says) || wrong.Hint == "" || a != nil):
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	a, err := Pack(tooLarge{tree.Map{"large": "x", "small": "y"}})
	if err != nil || a.Files != 1 || !slices.Equal(a.Left, []string{"large"}) {
		t.Errorf("%+v, %v", a, err)
	}
}

// crowd has many files in its root, without a map of them.
type crowd struct {
	tree.Map
	n int
}

func (c crowd) ReadDir(string) (out []tree.Entry, _ error) {
	for i := range c.n {
		out = append(out, tree.Entry{Name: fmt.Sprint(i), Mode: tree.File})
	}
	return out, nil
}

func (c crowd) ReadFile(string) ([]byte, error) { return []byte("x"), nil }

type tooLarge struct{ tree.Map }

func (t tooLarge) ReadFile(p string) ([]byte, error) {
	if p == "large" {
		return nil, &tree.TooLargeError{Path: p}
	}
	return t.Map.ReadFile(p)
}

// archived is an archive by somebody else than Pack.
func archived(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The daemon believes nothing of what it gets.
func TestHostileArchives(t *testing.T) {
	t.Parallel()
	file := func(name string, size int64) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: size}
	}
	var bomb, files, dirs []tar.Header
	for i := range maxFiles + 1 {
		files = append(files, file(fmt.Sprint(i), 0))
		dirs = append(dirs, file(fmt.Sprintf("%d/%d/x", i, i), 0))
		if i < 40 {
			bomb = append(bomb, file(fmt.Sprint(i), git.MaxFileBytes))
		}
	}
	var records []tar.Header
	for i := range 80 {
		records = append(records, tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeReg, Format: tar.FormatPAX, PAXRecords: map[string]string{"WEIR.x": strings.Repeat("y", 1<<20-100)}})
	}
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"nothing":                  {nil, "cannot be read"},
		"no archive":               {[]byte("hello"), "cannot be read"},
		"cut off":                  {archived(t, file("a", 100))[:40], "cannot be read"},
		"above the root":           {archived(t, file("../a", 1)), "that Git does not allow"},
		"absolute":                 {archived(t, file("/etc/a", 1)), "that Git does not allow"},
		"not clean":                {archived(t, file("a//b", 1)), "that Git does not allow"},
		"with a backslash":         {archived(t, file(`a\b`, 1)), "that Git does not allow"},
		"Git's own":                {archived(t, file("a/.GIT/config", 1)), "files of Git itself"},
		"twice":                    {archived(t, file("a", 1), file("a", 1)), "a path twice"},
		"a file and a directory":   {archived(t, file("a", 1), file("a/b", 1)), "a file and a directory of the same path"},
		"a directory and a file":   {archived(t, file("a/b", 1), file("a", 1)), "a path twice"},
		"below a link":             {archived(t, tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "b"}, file("a/b", 1)), "a file and a directory of the same path"},
		"a link out":               {archived(t, tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "../x"}), "leads out"},
		"a hard link":              {archived(t, tar.Header{Name: "a", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}), "other than files and symlinks"},
		"a device":                 {archived(t, tar.Header{Name: "a", Typeflag: tar.TypeChar}), "other than files and symlinks"},
		"a directory by itself":    {archived(t, tar.Header{Name: "a/", Typeflag: tar.TypeDir}), "other than files and symlinks"},
		"a large file":             {archived(t, file("a", git.MaxFileBytes+1)), "a file has more than 8 MiB"},
		"many large ones":          {archived(t, bomb...), "its files are larger than 32 MiB"},
		"many files":               {archived(t, files...), "more than 20000 files"},
		"many directories":         {archived(t, dirs...), "more than 20000 directories"},
		"headers that hold a lot":  {archived(t, records...), "larger than allowed"},
		"a path that is very deep": {archived(t, file(strings.Repeat("a/", 130)+"b", 0)), "that Git does not allow"},
		"a path that is very long": {archived(t, file(strings.Repeat("a/", 600)+"b", 0)), "that Git does not allow"},
	} {
		got, err := Unpack(bytes.NewReader(c.data))
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Message, c.says) || wrong.Hint == "" || got != nil {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	a, err := Pack(tree.Map{"a/b": "c", "d": "symlink:a"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(a.Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Unpack(bytes.NewReader(data))
		if err != nil {
			return
		}
		if err := walk(got, ".", func(p string, _ tree.Entry) error {
			_, err := got.ReadFile(p)
			return err
		}); err != nil {
			t.Error(err)
		}
	})
}
