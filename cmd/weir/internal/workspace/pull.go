package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/wording"
)

// Pull identifies a pull request (on GitLab, a merge request).
type Pull struct {
	// Source may be empty if there is only one source, or if targets are named.
	Source string
	Number int64
}

// ParsePull parses NUMBER or SOURCE#NUMBER.
func ParsePull(text string) (Pull, error) {
	name, number, named := strings.Cut(text, "#")
	if !named {
		name, number = "", text
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 {
		return Pull{}, advice.Usage("write it like 12, or pools#12 for pull request 12 of the source pools", "%q is not a pull request", text)
	}
	return Pull{Source: name, Number: n}, nil
}

func (p Pull) given() bool { return p.Number > 0 }

// sourceOf returns the source of a draft.
func sourceOf(c *config.Config, f Draft, repositories []string) (config.Source, error) {
	if f.Pull.Source == "" {
		return c.SourceOf(f.Targets, repositories)
	}
	var names []string
	for _, s := range c.Sources {
		if s.Name == f.Pull.Source {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return config.Source{}, advice.Usage(advice.DidYouMean(f.Pull.Source, names, "the sources are "+strings.Join(names, ", ")), "there is no source %q", f.Pull.Source)
}

// refsOf returns the refs of a pull request's head and of the forge's own merge in a source's repository,
// and the forge's term for a pull request. If the configuration has no forge for the source, it returns the
// refs of every kind of forge.
func refsOf(c *config.Config, name string, number int64) (refs []forge.PullRefs, noun string) {
	for _, f := range c.Forges {
		if p := f.Profile(); f.Source == name && !p.WebhooksOnly {
			return []forge.PullRefs{{Head: p.HeadRef(number), Merge: p.MergeRef(number)}}, p.PullRequest
		}
	}
	return forge.AllPullRefs(number), "pull request"
}

// fromPull returns a source as it would be after a pull request was merged into the followed commit.
func (w *Workspace) fromPull(ctx context.Context, c *config.Config, s config.Source, dir string, number int64, followed string, secrets *redact.Registry) (p proposed, err error) {
	refs, noun := refsOf(c, s.Name, number)
	name := fmt.Sprintf("%s %d", noun, number)
	if followed == "" {
		return p, fmt.Errorf("plan %s: the commit that source %s follows cannot be read", name, s.Name)
	}
	var absent []string
	for i, ref := range refs {
		head, err := w.fromSource(ctx, s, filepath.Join(dir, strconv.Itoa(i)), ref.Head, secrets)
		var missing *fault.UnavailableError
		switch {
		case errors.As(err, &missing) && missing.Reason == fault.MissingRef:
			absent = append(absent, ref.Head)
			continue
		case err != nil:
			return p, err
		}
		revision := head.Snapshot.Revision
		m, err := w.sources[s.Name].Pull(ctx, source.PullRef{Head: ref.Head, MergeRef: ref.Merge, HeadSHA: revision, Base: followed})
		if err != nil {
			return p, fmt.Errorf("merge %s: %w", name, err)
		}
		if len(m.Conflicts) > 0 {
			return p, advice.Hinted(fmt.Errorf("%s cannot be merged: %s", name, m.Conflicts[0]), "update its branch, or plan the branch as it is with --ref "+ref.Head)
		}
		p.Snapshot, p.what = m.Snapshot, fmt.Sprintf("%s (%s), merged into what is followed", name, wording.Clean(revision[:7]))
		return p, nil
	}
	return p, advice.Hinted(fmt.Errorf("plan %s: source %s has no %s", name, s.Name, strings.Join(absent, " and no ")),
		"--pull-request takes the number that the forge shows; a branch is planned with --ref")
}
