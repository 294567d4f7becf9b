package demo

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // Git names its objects by SHA-1
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"time"
)

// writeRepository commits files on the branch main below dir/.git, for machines without git. It writes only
// loose objects, a branch and HEAD, which is sufficient for readers.
func writeRepository(dir string, files fs.FS) error {
	git := filepath.Join(dir, ".git")
	for _, d := range []string{"objects", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(git, filepath.FromSlash(d)), 0o755); err != nil { //nolint:gosec // as git makes it
			return err
		}
	}
	tree, err := writeTree(git, files, ".")
	if err != nil {
		return err
	}
	now := time.Now()
	who := fmt.Sprintf("%s <%s> %d +0000", author, authorEmail, now.Unix())
	commit, err := writeObject(git, "commit", fmt.Appendf(nil, "tree %x\nauthor %s\ncommitter %s\n\n%s\n", tree, who, who, subject))
	if err != nil {
		return err
	}
	for name, content := range map[string]string{
		"config":          "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
		"refs/heads/main": hex.EncodeToString(commit) + "\n",
		"HEAD":            "ref: refs/heads/main\n",
	} {
		if err := os.WriteFile(filepath.Join(git, filepath.FromSlash(name)), []byte(content), 0o644); err != nil { //nolint:gosec // as git makes it
			return err
		}
	}
	return nil
}

// writeTree writes the directory name of files with all its content, and returns the object name of the
// tree.
func writeTree(git string, files fs.FS, name string) ([]byte, error) {
	entries, err := fs.ReadDir(files, name)
	if err != nil {
		return nil, err
	}
	// Git sorts a directory as if its name ended with a slash.
	sortName := func(e fs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	sort.Slice(entries, func(i, j int) bool { return sortName(entries[i]) < sortName(entries[j]) })
	var body bytes.Buffer
	for _, e := range entries {
		mode, hash := "100644", []byte(nil)
		if e.IsDir() {
			mode = "40000"
			hash, err = writeTree(git, files, path.Join(name, e.Name()))
		} else {
			var content []byte
			if content, err = fs.ReadFile(files, path.Join(name, e.Name())); err == nil {
				hash, err = writeObject(git, "blob", content)
			}
		}
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&body, "%s %s\x00%s", mode, e.Name(), hash)
	}
	return writeObject(git, "tree", body.Bytes())
}

// writeObject writes a loose object and returns its name.
func writeObject(git, kind string, content []byte) ([]byte, error) {
	data := append(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content...)
	sum := sha1.Sum(data) //nolint:gosec // as above
	name := hex.EncodeToString(sum[:])
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	dir := filepath.Join(git, "objects", name[:2])
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as git makes it
		return nil, err
	}
	err := os.WriteFile(filepath.Join(dir, name[2:]), packed.Bytes(), 0o444) //nolint:gosec // as git makes it
	if errors.Is(err, fs.ErrPermission) {
		err = nil // the same object already exists and is read-only
	}
	return sum[:], err
}
