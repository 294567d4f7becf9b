package app

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/coord"
)

// Keys that the engine holds encrypted lie plain in no state directory: the first daemon brings its own along, and none makes another.
func TestSharedKeysLieNowherePlain(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	s.repo.Commit("first")
	root := filepath.Join(s.dir, "keys")
	if err := os.WriteFile(root, []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []*member
	for _, name := range []string{"a", "b"} {
		c := s.settings(name)
		c.Coordination = config.Coordination{KeysFile: root, Etcd: config.Etcd{Endpoints: []string{"http://127.0.0.1:1"}}}
		if name == "b" {
			if err := os.Remove(filepath.Join(c.StateDir, "digest.key")); err != nil {
				t.Fatal(err)
			}
		}
		s.engine, s.name = coord.New(s.store, coord.Options{}), name
		app, stop := s.startConfig(c, nil)
		s.engine, s.name = nil, ""
		defer stop()
		all = append(all, &member{app, stop})
		for _, file := range []string{"digest.key", "session.key"} {
			if _, err := os.Stat(filepath.Join(c.StateDir, file)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s of %s is there: %v", file, name, err)
			}
		}
	}
	for _, m := range all {
		if !bytes.Equal(m.key, make([]byte, 32)) || !bytes.Equal(m.keys.Shared["session"], all[0].keys.Shared["session"]) || len(m.keys.Shared["session"]) != 32 {
			t.Errorf("the keys differ: %x, %x", m.key, m.keys.Shared)
		}
	}
}
