package statedir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/engine"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/state/files"
	"github.com/weir-gitops/weir/reconciler/state/keys"
)

// Keyring contains the keys of a daemon, by use.
type Keyring struct {
	// Dir is the state directory.
	Dir *Dir
	// Shared contains the keys that all daemons of the instance share.
	Shared map[string][]byte
}

// Key returns the key for a use: the instance's, or, for a single daemon, the state directory's.
func (k *Keyring) Key(use string, own func(dir string) ([]byte, error)) ([]byte, error) {
	if key := k.Shared[use]; key != nil {
		return key, nil
	}
	return own(k.Dir.Name)
}

// Share reads the keys that all daemons of the instance share, or creates them from the keys of this
// daemon's state directory. Afterwards, no state directory contains them unencrypted; to return to a single
// daemon, weir state move writes them there.
func (k *Keyring) Share(ctx context.Context, c *config.Config, records *state.Shared, log *slog.Logger) error {
	if !c.Several() {
		return nil
	}
	ring, err := engine.Keys(c, records)
	if err != nil {
		return err
	}
	k.Shared = map[string][]byte{}
	for _, use := range []string{keys.Digest, keys.Session} {
		file := k.Dir.Path(use + ".key")
		first, err := files.ReadKey(file, use+" key", "the daemons share another one")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if k.Shared[use], err = ring.Key(ctx, use, first); err != nil {
			return err
		}
		if first != nil && bytes.Equal(first, k.Shared[use]) {
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("remove the plain copy of a key that is encrypted in the engine: %w", err)
			}
			log.Info("coordination: the key is encrypted in the engine, and its plain copy is removed", "file", file)
		}
	}
	return nil
}
