package source

import (
	"context"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
)

// The merge by paths is weir's own code. go-git only merges by fast-forward, and git itself needs a work tree
// or a program that may not be installed. weir merges trees without the contents of files. If both sides
// changed a file, this is a conflict, because a plan for a merged file would show content that no person
// wrote.

// mergePull merges p's head into its base. Both must be in the repository. forge is the forge's merge commit,
// or the zero hash.
func (r repository) mergePull(ctx context.Context, p PullRef, forge plumbing.Hash) (Merge, error) {
	head, err := r.snapshot(plumbing.NewHash(p.HeadSHA), p.Head)
	if err != nil {
		return Merge{}, err
	}
	if head.Revision != p.HeadSHA {
		return Merge{}, fault.New(fault.MissingRef, "%s is a tag, not a commit", p.HeadSHA)
	}
	have, err := r.db.Has(plumbing.NewHash(p.Base))
	if err != nil {
		return Merge{}, err
	}
	if !have {
		return Merge{}, fault.New(fault.MissingRef, "commit %s to merge with is not here; use a revision of this source", p.Base)
	}
	base, err := r.history.Commit(plumbing.NewHash(p.Base))
	if err != nil {
		return Merge{}, err
	}
	if err := r.verify.Verify(base.Tree); err != nil {
		return Merge{}, err
	}
	m := Merge{Snapshot: head}
	m.Snapshot.Parent = p.Base
	bases, behind, err := r.history.MergeBases(ctx, plumbing.NewHash(p.Base), plumbing.NewHash(p.HeadSHA))
	if err != nil {
		return Merge{}, err
	}
	m.Behind = min(behind, maxBehind)
	if len(bases) > 0 {
		m.MergeBase = bases[0].String()
	}
	t, ok, err := r.forgeTree(p, forge)
	if err != nil {
		return Merge{}, err
	}
	if ok {
		m.Snapshot.Tree, m.FromForge = t, true
		return m, nil
	}
	t, m.Conflicts, err = r.mergeTrees(ctx, bases, base.Tree, head.Tree.(*git.Tree).Root)
	if err != nil {
		return Merge{}, err
	}
	m.Snapshot.Tree = nil
	if t != nil {
		m.Snapshot.Tree = t
	}
	return m, nil
}

// forgeTree returns the tree of the forge's merge commit if its parents are exactly the base and head of p. A
// merge commit from another time, or of other commits, is not used.
func (r repository) forgeTree(p PullRef, forge plumbing.Hash) (*git.Tree, bool, error) {
	if forge.IsZero() {
		return nil, false, nil
	}
	c, err := r.history.Commit(forge)
	if err != nil {
		return nil, false, err
	}
	if !slices.Equal(c.Parents, []plumbing.Hash{plumbing.NewHash(p.Base), plumbing.NewHash(p.HeadSHA)}) {
		return nil, false, nil
	}
	if err := r.verify.Verify(c.Tree); err != nil {
		return nil, false, err
	}
	return &git.Tree{Db: r.db, Root: c.Tree}, true, nil
}

// mergeTrees merges two trees with each merge base. All results must be equal.
func (r repository) mergeTrees(ctx context.Context, bases []plumbing.Hash, ours, theirs plumbing.Hash) (*git.Tree, []Conflict, error) {
	if len(bases) == 0 {
		return nil, []Conflict{{Kind: UnrelatedHistories}}, nil
	}
	several := []Conflict{{Kind: SeveralMergeBases}}
	if len(bases) > git.MaxMergeBases {
		return nil, several, nil
	}
	var first *merger
	for _, b := range bases {
		c, err := r.history.Commit(b)
		if err != nil {
			return nil, nil, err
		}
		m := &merger{ctx: ctx, db: r.db, merged: map[plumbing.Hash]*git.Directory{}}
		if m.root, err = m.dir("", c.Tree, ours, theirs); err != nil {
			return nil, nil, err
		}
		switch {
		case first == nil:
			first = m
		case m.root != first.root || !slices.Equal(m.conflicts, first.conflicts):
			return nil, several, nil
		}
	}
	if n := len(first.conflicts); n > 0 {
		return nil, first.conflicts[:min(n, MaxConflicts)], nil
	}
	if first.root.IsZero() { // everything was deleted
		first.root = first.storeDirectory(&git.Directory{})
	}
	return &git.Tree{Db: r.db, Root: first.root, Merged: first.merged}, nil, nil
}

// merger merges trees by path. It does not read a directory that is equal on two of the three sides.
type merger struct {
	ctx  context.Context // of the only call
	db   *git.Store
	root plumbing.Hash
	// merged has directories that are in no commit, by the names that Git would give them.
	merged    map[plumbing.Hash]*git.Directory
	conflicts []Conflict
}

// item is an entry of a directory. Its Mode is 0 if the entry is missing.
type item struct {
	tree.Entry
	hash plumbing.Hash
}

func (i item) is(j item) bool { return i.Mode == j.Mode && i.hash == j.hash }

// file returns i if it is not a directory. sub returns the directory if it is one.
func (i item) file() item {
	if i.Mode == tree.Dir {
		return item{}
	}
	return i
}

func (i item) sub() plumbing.Hash {
	if i.Mode == tree.Dir {
		return i.hash
	}
	return plumbing.ZeroHash
}

// dir merges the directory at a path, and stores the result. The zero hash stands for an empty directory.
// Conflicts go to m.conflicts; after MaxConflicts the result is incomplete.
func (m *merger) dir(at string, base, ours, theirs plumbing.Hash) (plumbing.Hash, error) {
	switch {
	case ours == theirs || base == theirs:
		return ours, nil
	case base == ours:
		return theirs, nil
	}
	if err := m.ctx.Err(); err != nil {
		return plumbing.ZeroHash, err
	}
	var sides [3]*git.Directory
	for i, h := range []plumbing.Hash{base, ours, theirs} {
		sides[i] = &git.Directory{}
		if !h.IsZero() {
			n, err := m.db.Tree(h)
			if err != nil {
				return plumbing.ZeroHash, err
			}
			sides[i] = n
		}
	}
	out := &git.Directory{}
	for pos := [3]int{}; ; {
		name, more := nextName(sides, pos)
		if !more {
			break
		}
		var in [3]item
		for i, n := range sides {
			if at := pos[i]; at < len(n.Entries) && n.Entries[at].Name == name {
				in[i] = item{n.Entries[at], n.Hashes[at]}
				pos[i]++
			}
		}
		got, err := m.entry(at+name, in[0], in[1], in[2])
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if got.Mode != 0 {
			got.Name = name
			out.Entries, out.Hashes = append(out.Entries, got.Entry), append(out.Hashes, got.hash)
		}
		if len(m.conflicts) >= MaxConflicts {
			break
		}
	}
	if len(out.Entries) == 0 {
		return plumbing.ZeroHash, nil
	}
	return m.storeDirectory(out), nil
}

// nextName returns the first name that is left on any side.
func nextName(sides [3]*git.Directory, pos [3]int) (name string, more bool) {
	for i, n := range sides {
		if pos[i] < len(n.Entries) && (!more || n.Entries[pos[i]].Name < name) {
			name, more = n.Entries[pos[i]].Name, true
		}
	}
	return name, more
}

// storeDirectory stores a directory under the name that Git would give it.
func (m *merger) storeDirectory(n *git.Directory) plumbing.Hash {
	h := n.Hash()
	m.merged[h] = n
	return h
}

// entry merges the entries with one name. For Git, a file and a directory with the same name are two paths.
// Each is merged separately, and only one of them can remain.
func (m *merger) entry(at string, base, ours, theirs item) (item, error) {
	switch {
	case ours.is(theirs) || base.is(theirs):
		return ours, nil
	case base.is(ours):
		return theirs, nil
	}
	sub, err := m.dir(at+"/", base.sub(), ours.sub(), theirs.sub())
	if err != nil {
		return item{}, err
	}
	file, kind := mergeFile(base.file(), ours.file(), theirs.file())
	// A file that became a directory on the other side was not simply deleted there.
	if kind == ChangedAndDeleted && (ours.Mode == tree.Dir || theirs.Mode == tree.Dir) || file.Mode != 0 && !sub.IsZero() {
		kind = FileAndDirectory
	}
	if kind != "" {
		m.conflict(at, kind)
	}
	switch {
	case file.Mode != 0:
		return file, nil
	case sub.IsZero():
		return item{}, nil
	}
	return item{tree.Entry{Mode: tree.Dir, Hash: sub.String(), Size: -1}, sub}, nil
}

// conflict records a conflict. Conflicts inside a directory come before the conflict of its name.
func (m *merger) conflict(at string, kind ConflictKind) {
	c := Conflict{Path: at, Kind: kind}
	i, _ := slices.BinarySearchFunc(m.conflicts, c, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
	m.conflicts = slices.Insert(m.conflicts, i, c)
}

// mergeFile merges an entry that is not a directory. Mode and content of a file are merged separately, as in
// Git. After a conflict it returns one side.
func mergeFile(base, ours, theirs item) (item, ConflictKind) {
	switch {
	case ours.is(theirs) || base.is(theirs):
		return ours, ""
	case base.is(ours):
		return theirs, ""
	case ours.Mode == 0:
		return theirs, ChangedAndDeleted
	case theirs.Mode == 0:
		return ours, ChangedAndDeleted
	case ours.Mode.IsFile() != theirs.Mode.IsFile() || !ours.Mode.IsFile() && ours.Mode != theirs.Mode:
		return ours, KindConflict
	}
	out := ours
	switch {
	case ours.hash == theirs.hash || base.hash == theirs.hash && base.Mode != 0:
	case base.hash == ours.hash && base.Mode != 0:
		out = theirs
	case ours.Mode == tree.Submodule:
		return ours, SubmoduleConflict
	case base.Mode == 0:
		return ours, BothAdded
	default:
		return ours, BothChanged
	}
	switch {
	case ours.Mode == theirs.Mode || base.Mode == theirs.Mode:
		out.Mode = ours.Mode
	case base.Mode == ours.Mode:
		out.Mode = theirs.Mode
	default:
		return ours, ModeConflict
	}
	return out, ""
}
