package fill

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// The two aliases of a template's versions.
const (
	latest   = "$Latest"
	standard = "$Default"
)

// wanted contains the versions to read, by the name of their template.
type wanted map[string][]int64

// fillVersions reads the contents of template versions that are not cached, in the cheaper of two ways: a
// call for each template, or the account-wide list of newest and default versions, which also contains other
// owners' templates.
func (f *Filler) fillVersions(ctx context.Context, s *observed.State, refs []observed.TemplateRef) error {
	want, err := f.wantedVersions(s, refs)
	if err != nil {
		return err
	}
	if aliases, pages := sweep(s, want); pages < len(want) { // sweepVersions removes the versions that it finds from want
		// Other owners' templates make the list longer by an unknown number of pages. So it is given up when
		// it would cost as much as the other way.
		if err := f.sweepVersions(ctx, s, want, aliases, len(want)-1); err != nil && read.Denied(err) == nil {
			return err
		}
	}
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(sdk.Parallel)
	ids := make(map[string]string, len(want))
	for name := range want {
		ids[name] = s.Templates[name].ID
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		numbers := want[name]
		g.Go(func() error {
			versions, missing, gone, err := f.reader.Versions(gctx, ids[name], numbers...)
			mu.Lock()
			defer mu.Unlock()
			if e := read.Denied(err); e != nil {
				s.Unread.Versions = read.Note(s.Unread.Versions, name, e)
				return nil
			}
			if err != nil {
				return err
			}
			if gone {
				delete(s.Templates, name)
				s.Absent.Templates[name] = true
				return nil
			}
			f.addVersions(s, name, versions, missing)
			return nil
		})
	}
	return g.Wait()
}

// wantedVersions groups the references by template, with resolved aliases and without the known versions.
func (f *Filler) wantedVersions(s *observed.State, refs []observed.TemplateRef) (wanted, error) {
	byID := map[string]string{}
	for _, r := range refs {
		if r.Name == "" {
			for name, t := range s.Templates {
				byID[t.ID] = name
			}
			break
		}
	}
	want := wanted{}
	for _, r := range refs {
		name := r.Name
		if name == "" {
			name = byID[r.ID]
		}
		t, ok := s.Templates[name]
		if !ok {
			return nil, &observed.Error{Kind: observed.Invalid, Service: "ec2", Operation: "DescribeLaunchTemplateVersions", Code: "UnknownTemplate",
				Message: "versions of the template " + name + r.ID + " were asked for before the template was read"}
		}
		number, err := versionNumber(t, r.Version)
		if err != nil {
			return nil, err
		}
		if _, known := t.Versions[number]; known || t.Missing[number] {
			continue
		}
		if !slices.Contains(want[name], number) {
			want[name] = append(want[name], number)
		}
	}
	return want, nil
}

func versionNumber(t observed.Template, version string) (int64, error) {
	switch version {
	case latest:
		return t.LatestVersion, nil
	case standard, "":
		return t.DefaultVersion, nil
	}
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return 0, &observed.Error{Kind: observed.Invalid, Service: "ec2", Operation: "DescribeLaunchTemplateVersions", Code: "InvalidVersion",
			Message: "the version " + strconv.Quote(version) + " of the template " + t.Name + " is not a number", Err: err}
	}
	return n, nil
}

// sweep returns the aliases that would cover the wanted versions, and the minimum number of pages of their
// account-wide list.
// Assumed of AWS: aliases-in-one-list.
func sweep(s *observed.State, want wanted) (aliases []string, pages int) {
	var newest, defaults bool
	for name, numbers := range want {
		t := s.Templates[name]
		for _, n := range numbers {
			switch n {
			case t.LatestVersion:
				newest = true
			case t.DefaultVersion:
				defaults = true
			}
		}
	}
	if newest {
		aliases = append(aliases, latest)
	}
	if defaults {
		aliases = append(aliases, standard)
	}
	if len(aliases) == 0 {
		return nil, len(want)
	}
	return aliases, (len(aliases)*len(s.Templates) + read.VersionsPage - 1) / read.VersionsPage
}

// sweepVersions reads at most limit pages of the account-wide list, and removes the versions that it finds
// from want.
func (f *Filler) sweepVersions(ctx context.Context, s *observed.State, want wanted, aliases []string, limit int) error {
	names := make(map[string]string, len(want))
	for name := range want {
		names[s.Templates[name].ID] = name
	}
	wants := func(id string, number int64) bool { return slices.Contains(want[names[id]], number) }
	take := func(id string, v observed.TemplateVersion) {
		name := names[id]
		f.addVersions(s, name, []observed.TemplateVersion{v}, nil)
		if want[name] = slices.DeleteFunc(want[name], func(n int64) bool { return n == v.Number }); len(want[name]) == 0 {
			delete(want, name)
		}
	}
	return f.reader.AliasedVersions(ctx, aliases, wants, take, func() bool {
		limit--
		return limit == 0 || len(want) == 0
	})
}

// addVersions puts versions into the cache and the state.
func (f *Filler) addVersions(s *observed.State, name string, versions []observed.TemplateVersion, missing []int64) {
	t := s.Templates[name]
	if len(versions) > 0 {
		t.Versions = f.memory.Versions.Add(t.ID, versions, f.client.Now())
	}
	if len(missing) > 0 {
		t.Missing = read.Copied(t.Missing)
		for _, n := range missing {
			t.Missing[n] = true
		}
	}
	s.Templates[name] = t
}

// fillNumbers reads the version numbers of templates. They are remembered while the template's newest
// version stays the same.
func (f *Filler) fillNumbers(ctx context.Context, s *observed.State, names []string) error {
	var unread []observed.Template
	for _, name := range names {
		t := s.Templates[name]
		if t.Numbers, t.Contents = f.memory.Versions.Numbers(t.ID, t.LatestVersion); t.Numbers != nil {
			s.Templates[name] = t
		} else {
			unread = append(unread, t)
		}
	}
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(sdk.Parallel)
	for _, t := range unread {
		g.Go(func() error {
			contents, gone, err := f.reader.Contents(gctx, t.ID)
			mu.Lock()
			defer mu.Unlock()
			if e := read.Denied(err); e != nil {
				s.Unread.VersionUsers = read.Note(s.Unread.VersionUsers, t.Name, e)
				return nil
			}
			if err != nil {
				return err
			}
			if gone {
				delete(s.Templates, t.Name)
				s.Absent.Templates[t.Name] = true
				return nil
			}
			t.Numbers, t.Contents = f.memory.Versions.SetNumbers(t.ID, t.LatestVersion, contents)
			s.Templates[t.Name] = t
			return nil
		})
	}
	return g.Wait()
}
