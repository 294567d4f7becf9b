package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
	"github.com/weir-gitops/weir/source/transport"
)

const (
	// maxHaves bounds the local commits that are reported to the server. There are several, because after a
	// force-push the server may not know the newest one.
	maxHaves = 32
	// maxBefore bounds the commit names that a recreated mirror takes over.
	maxBefore = 20_000
)

// limits are the limits of a mirror.
type limits struct {
	// packs is the number of packs from which the mirror is recreated, because every fetch adds one.
	packs int
	git.PackLimits
	// mirrorBytes is the size from which the mirror is recreated, if that is likely to halve it.
	mirrorBytes int64
	// pullBytes and pullObjects bound a fetch of a pull request, because anyone may open one. pulls is the
	// number of their heads that are remembered.
	pullBytes   int64
	pullObjects uint32
	pulls       int
}

func defaultLimits() limits {
	return limits{packs: 200, PackLimits: git.DefaultPackLimits(), mirrorBytes: 2 << 30, pullBytes: 256 << 20, pullObjects: 1_000_000, pulls: 200}
}

// mirror is a bare repository on disk with the full history of one ref. It is a cache: verification detects
// damage, and then the mirror is recreated. So files are not synced to disk.
//
// Files are created by renaming. A process that is killed leaves at most temporary files, which sweep
// removes.
type mirror struct {
	dir string
	// okName is the name of the file below refs/weir/ok that records the verified commit.
	okName string
	limits limits
	repository
	// suspect is true if an object could not be read or verification failed. The mirror must then be
	// recreated.
	suspect atomic.Bool
	// shallow is true if the server had only a part of the history at the last fetch. A missing commit is
	// then not damage.
	shallow atomic.Bool
	// crowded is true if pull requests made the mirror overgrown. It must then be recreated, even if the
	// followed ref did not change.
	crowded atomic.Bool
}

// okName returns the name under which the last good commit of a source is recorded. It depends on the ref, so
// that after a change of the configuration the commit of the previous branch is not used for the new branch.
func okName(source string, ref Ref) string {
	if ref == (Ref{}) {
		return source
	}
	sum := sha256.Sum256([]byte(ref.fullName() + ref.Commit + ref.SemVer))
	return source + "-" + hex.EncodeToString(sum[:4])
}

// newMirror returns the mirror in dir, which need not exist yet. okName names the file that records the last
// verified commit.
func newMirror(dir, okName string) *mirror {
	objects := filepath.Join(dir, "objects")
	m := &mirror{dir: dir, okName: okName, limits: defaultLimits()}
	db := git.NewStore(false, func() ([]string, error) { return []string{objects}, nil })
	db.Damaged = func(missing bool) {
		if !missing || !m.shallow.Load() {
			m.suspect.Store(true)
		}
	}
	m.repository = newRepository(db)
	m.beforeFile = filepath.Join(dir, "weir-before")
	return m
}

// prepare creates the layout, so that git itself can open the mirror too.
func (m *mirror) prepare() error {
	for _, d := range []string{m.dir, m.packDir(), filepath.Dir(m.okRef()), filepath.Dir(m.signedRef())} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("make mirror: %w", err)
		}
	}
	for name, text := range map[string]string{
		"HEAD":   "ref: refs/heads/main\n", // Git requires it, even if the branch does not exist.
		"config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
	} {
		file := filepath.Join(m.dir, name)
		if _, err := os.Stat(file); err == nil {
			continue
		}
		if err := writeAtomic(file, []byte(text)); err != nil {
			return fmt.Errorf("make mirror: %w", err)
		}
	}
	return nil
}

// overgrown reports whether the mirror should be recreated instead of adding a pack. This is the case if it
// has many packs, or if it is large and its largest pack is less than half of it. A recreated mirror has one
// such pack.
func (m *mirror) overgrown() bool { return m.above(1) }

// above is like overgrown, with limits that are multiplied by times.
func (m *mirror) above(times int) bool {
	if m.db.PackCount() >= times*m.limits.packs {
		return true
	}
	entries, err := os.ReadDir(m.packDir())
	if err != nil {
		return false // the next reader reports it
	}
	var sum, largest int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
			largest = max(largest, info.Size())
		}
	}
	return sum > int64(times)*m.limits.mirrorBytes && sum > 2*largest
}

// receive streams a pack from the server into the mirror and makes it visible. The time that this machine
// needs to read the pack does not count for the server's deadline.
func (m *mirror) receive(ctx context.Context, max git.PackLimits, stream func(io.Writer) error) error {
	resume := func() {}
	defer func() { resume() }()
	return m.db.Receive(ctx, filepath.Join(m.dir, "objects"), max, func(w io.Writer) error {
		err := stream(w)
		if err == nil {
			resume = transport.DeadlineOf(ctx).Pause()
		}
		return err
	})
}

func (m *mirror) packDir() string { return filepath.Join(m.dir, "objects", "pack") }

// signedRef returns the file that records the tag whose signature covers the commit of okRef.
func (m *mirror) signedRef() string { return filepath.Join(m.dir, "refs", "weir", "signed", m.okName) }

func (m *mirror) okRef() string { return filepath.Join(m.dir, "refs", "weir", "ok", m.okName) }

// ok returns the last verified commit, or the zero hash.
func (m *mirror) ok() (plumbing.Hash, error) { return readRef(m.okRef()) }

func readRef(file string) (plumbing.Hash, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return plumbing.ZeroHash, nil
	}
	if err != nil {
		return plumbing.ZeroHash, fault.Unread(err, "read the mirror's ref")
	}
	text := strings.TrimSpace(string(data))
	if !git.IsHash(text) {
		return plumbing.ZeroHash, fault.New(fault.Corrupt, "the mirror's ref holds no object name")
	}
	return plumbing.NewHash(text), nil
}

// setOK records a verified commit, and the tag or commit that was signed.
func (m *mirror) setOK(h, named plumbing.Hash) error {
	err := os.Remove(m.signedRef())
	if named != h {
		err = writeAtomic(m.signedRef(), []byte(named.String()+"\n"))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the mirror's ref: %w", err)
	}
	if err := writeAtomic(m.okRef(), []byte(h.String()+"\n")); err != nil {
		return fmt.Errorf("write the mirror's ref: %w", err)
	}
	return nil
}

// haves returns the names of commits in the mirror, from all refs that it has followed.
func (m *mirror) haves() []plumbing.Hash {
	queue := m.tips()
	var out []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	for _, tip := range queue {
		seen[tip] = true
	}
	pulls := m.pullHeads()
	for ; len(queue) > 0 && len(out) < maxHaves; queue = queue[1:] {
		data, err := m.db.Meta(plumbing.CommitObject, queue[0])
		if err != nil {
			// Fewer names only cost bytes, and verification detects damage.
			continue
		}
		c := &object.Commit{}
		if err := c.Decode(git.Object(plumbing.CommitObject, data)); err != nil {
			continue
		}
		out = append(out, queue[0])
		for _, p := range c.ParentHashes {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	for _, h := range pulls {
		if !seen[h] {
			seen[h] = true
			out = append(out, h)
		}
	}
	return out
}

// tips returns the last good commits of all refs that the mirror has followed.
func (m *mirror) tips() (out []plumbing.Hash) {
	refs := filepath.Dir(m.okRef())
	files, _ := os.ReadDir(refs) // without them a fetch transfers more bytes
	for _, f := range files {
		if tip, err := readRef(filepath.Join(refs, f.Name())); err == nil && !tip.IsZero() && !slices.Contains(out, tip) {
			out = append(out, tip)
		}
	}
	return out
}

// recordLostCommits writes to fresh, which replaces m, the hashes of commits that m has followed and that
// fresh does not have, for example after a force push, and the hashes that m itself took over. The server
// may no longer have these commits, so only their hashes remain. It writes at most maxBefore hashes, and
// omits unreadable commits.
func (m *mirror) recordLostCommits(fresh *mirror) error {
	var lost []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	for queue := m.tips(); len(queue) > 0 && len(lost) < maxBefore; queue = queue[1:] {
		h := queue[0]
		have, err := fresh.db.Has(h)
		if err != nil || have || seen[h] {
			continue
		}
		seen[h] = true
		if c, err := m.history.Commit(h); err == nil {
			lost, queue = append(lost, h), append(queue, c.Parents...)
		}
	}
	for _, h := range m.before() {
		if len(lost) < maxBefore && !seen[h] {
			lost = append(lost, h)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	var text strings.Builder
	for _, h := range lost {
		fmt.Fprintln(&text, h)
	}
	if err := writeAtomic(fresh.beforeFile, []byte(text.String())); err != nil {
		return fmt.Errorf("name the commits of the mirror that is replaced: %w", err)
	}
	return nil
}

// sweep removes temporary files, locks and incomplete packs that are older than age. A killed process leaves
// such files.
func (m *mirror) sweep(now time.Time, age time.Duration) error {
	packs, err := git.ListPacks(filepath.Join(m.dir, "objects"))
	if err != nil {
		return err
	}
	whole := map[string]bool{}
	for _, base := range packs {
		whole[base] = true
	}
	return filepath.WalkDir(m.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, ext := d.Name(), filepath.Ext(p)
		stale := strings.HasPrefix(name, git.TempPrefix) || ext == ".lock" ||
			(ext == ".idx" || ext == ".pack") && !whole[strings.TrimSuffix(p, ext)]
		if !stale {
			return nil
		}
		info, err := d.Info()
		if err != nil || now.Sub(info.ModTime()) < age {
			return nil //nolint:nilerr // it is already gone
		}
		return os.Remove(p)
	})
}

// replaceBy replaces this mirror with a new one from the neighbouring directory. The two renames are not
// atomic. If a process is killed between them, the next one finds no mirror and creates one. Returned trees
// stay usable if the new mirror has their objects.
func (m *mirror) replaceBy(fresh *mirror) error {
	fresh.db.Close()
	old := m.dir + ".old"
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("replace mirror: %w", err)
	}
	err := m.db.Exchange(func() error {
		if err := os.Rename(m.dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("replace mirror: %w", err)
		}
		if err := os.Rename(fresh.dir, m.dir); err != nil {
			return fmt.Errorf("replace mirror: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	m.verify.Forget()
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("remove replaced mirror: %w", err)
	}
	return nil
}

// writeAtomic replaces a file, so that readers see either the old or the new content.
func writeAtomic(file string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), git.TempPrefix)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // otherwise sweep removes it
	}
	return err
}
