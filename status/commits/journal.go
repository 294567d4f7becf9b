package commits

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// journal is a file with the commits whose statuses are not finished, and the last
// commit of each source. It is small (one or two commits a source), so each write
// is a whole new file and a rename.
type journal struct {
	path string
}

type journalFile struct {
	Version int      `json:"version"`
	Commits []*track `json:"commits"`
}

const journalVersion = 1

// errUnreadable says that the journal was not understood and moved aside.
var errUnreadable = errors.New("status journal is unreadable")

// read returns nothing where there is no journal. A journal that cannot be
// understood is moved aside (errUnreadable): statuses that it held may stay
// pending, which is better than a daemon that does not start.
func (j journal) read() ([]*track, error) {
	raw, err := j.text()
	if raw == nil || err != nil {
		return nil, err
	}
	tracks, err := parseJournal(raw)
	if err != nil {
		if err := os.Rename(j.path, j.path+".unreadable"); err != nil {
			return nil, fmt.Errorf("put unreadable status journal aside: %w", err)
		}
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return tracks, nil
}

// text is the journal's, nil where there is none.
func (j journal) text() ([]byte, error) {
	raw, err := os.ReadFile(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read status journal: %w", err)
	}
	return raw, nil
}

func parseJournal(raw []byte) ([]*track, error) {
	var file journalFile
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("parse status journal: %w", err)
	}
	if file.Version != journalVersion {
		return nil, fmt.Errorf("parse status journal: version %d is not known", file.Version)
	}
	for _, t := range file.Commits {
		if t == nil || t.Source == "" || t.SHA == "" {
			return nil, errors.New("parse status journal: a commit without source or hash")
		}
		for name, ct := range t.Contexts {
			if ct == nil || ct.Want.Context != name {
				return nil, fmt.Errorf("parse status journal: context %q is broken", name)
			}
		}
		for name, target := range t.Targets {
			if target == nil {
				return nil, fmt.Errorf("parse status journal: target %q is broken", name)
			}
		}
		if t.Contexts == nil {
			t.Contexts = map[string]*contextTrack{}
		}
		if t.Targets == nil {
			t.Targets = map[string]*targetTrack{}
		}
	}
	return file.Commits, nil
}

// write replaces the journal. It is on disk when write returns.
func (j journal) write(raw []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(j.path), filepath.Base(j.path)+".*")
	if err != nil {
		return fmt.Errorf("write status journal: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write status journal: %w", err), tmp.Close(), os.Remove(tmp.Name()))
		}
	}()
	if _, err = tmp.Write(raw); err != nil {
		return err
	}
	if err = tmp.Sync(); err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), j.path); err != nil {
		return err
	}
	return tmp.Close()
}

// save writes the journal if it lacks something that must precede a write to a
// forge, or with all if it lacks anything. Several workers may call it.
func (c *Commits) save(all bool) error {
	c.saving.Lock()
	defer c.saving.Unlock()
	c.mu.Lock()
	if !c.changed && (!all || !c.stale) {
		c.mu.Unlock()
		return nil
	}
	file := journalFile{Version: journalVersion, Commits: slices.Clone(c.waiting)}
	if file.Commits == nil {
		file.Commits = []*track{}
	}
	for _, source := range slices.Sorted(maps.Keys(c.tracks)) {
		file.Commits = slices.Concat(file.Commits, c.tracks[source])
	}
	raw, err := json.Marshal(file)
	c.changed, c.stale = false, false
	c.mu.Unlock()
	if err == nil {
		err = c.journal.write(raw)
	}
	if err != nil {
		c.mu.Lock()
		c.changed = true
		c.mu.Unlock()
	}
	return err
}
