package memory

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// The version cache forgets a template that no pass has used for versionsUnusedFor. It keeps the newest
// versionsKept versions of each, because groups run them and plans compare with them.
const (
	versionsUnusedFor = time.Hour
	versionsKept      = 32
)

// Versions caches template versions, which AWS never changes. Its maps never change either, so that states
// can share them: an addition makes a new map.
type Versions struct {
	mu        sync.Mutex
	templates map[string]templateVersions // by template id
	swept     time.Time
}

type templateVersions struct {
	versions map[int64]observed.TemplateVersion
	used     time.Time
	// all lists the version numbers that existed while newest was the newest version. It is nil before the
	// first read.
	all      []int64
	contents map[int64]string
	newest   int64
}

// Recall puts the cached versions into each of the templates.
func (c *Versions) Recall(templates map[string]observed.Template, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, t := range templates {
		known, ok := c.templates[t.ID]
		if !ok {
			continue
		}
		known.used = now
		c.templates[t.ID] = known
		t.Versions = known.versions
		templates[name] = t
	}
	if now.Sub(c.swept) >= versionsUnusedFor {
		c.swept = now
		maps.DeleteFunc(c.templates, func(_ string, v templateVersions) bool { return now.Sub(v.used) >= versionsUnusedFor })
	}
}

// Add caches versions of a template and returns all cached versions of it.
func (c *Versions) Add(id string, versions []observed.TemplateVersion, now time.Time) map[int64]observed.TemplateVersion {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(c.templates[id].versions)
	if all == nil {
		all = make(map[int64]observed.TemplateVersion, len(versions))
	}
	for _, v := range versions {
		all[v.Number] = v
	}
	if len(all) > versionsKept {
		for _, n := range slices.Sorted(maps.Keys(all))[:len(all)-versionsKept] {
			if !slices.ContainsFunc(versions, func(v observed.TemplateVersion) bool { return v.Number == n }) {
				delete(all, n)
			}
		}
	}
	entry := c.templates[id]
	entry.versions, entry.used = all, now
	c.templates[id] = entry
	return all
}

// Forget forgets the versions of a template, so that they are read again.
func (c *Versions) Forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.templates, id)
}

// Numbers returns a template's version numbers, ascending, and the contents in their descriptions. It
// returns nil if they must be read.
func (c *Versions) Numbers(id string, newest int64) ([]int64, map[int64]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.templates[id]; known.newest == newest {
		return known.all, known.contents
	}
	return nil, nil
}

// SetNumbers caches the version numbers of a template and returns them like Numbers.
func (c *Versions) SetNumbers(id string, newest int64, contents map[int64]string) ([]int64, map[int64]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.templates[id]
	entry.all = slices.AppendSeq(make([]int64, 0, len(contents)), maps.Keys(contents))
	slices.Sort(entry.all)
	if entry.contents, entry.newest = contents, newest; entry.all == nil || !slices.Contains(entry.all, newest) {
		entry.newest = 0 // the read is outdated, so the next pass must read again
	}
	c.templates[id] = entry
	return entry.all, contents
}

// ForgetNumbers forgets the version numbers of a template, so that they are read again.
func (c *Versions) ForgetNumbers(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.templates[id]
	entry.all, entry.contents, entry.newest = nil, nil, 0
	c.templates[id] = entry
}
