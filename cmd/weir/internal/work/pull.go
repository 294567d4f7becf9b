package work

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
	"github.com/weir-gitops/weir/status/wording"
)

// Pull names a pull request, on GitLab a merge request.
type Pull struct {
	// Source may be empty where there is only one, or where targets are named.
	Source string
	Number int64
}

// ParsePull reads NUMBER or SOURCE#NUMBER.
func ParsePull(text string) (Pull, error) {
	name, number, named := strings.Cut(text, "#")
	if !named {
		name, number = "", text
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 {
		return Pull{}, advice.Usage("write it like 12, or pools#12 for that of the source pools", "%q is no pull request", text)
	}
	return Pull{Source: name, Number: n}, nil
}

func (p Pull) given() bool { return p.Number > 0 }

// sourceOf is the source that a draft is of.
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

// refsOf are where a source's repository may keep the head of a pull request, and what its
// forge makes of it and the followed branch.
func refsOf(c *config.Config, name string, number int64) (refs []source.PullRef) {
	pull := source.PullRef{Head: fmt.Sprintf("refs/pull/%d/head", number)}
	request := source.PullRef{Head: fmt.Sprintf("refs/merge-requests/%d/head", number), MergeRef: fmt.Sprintf("refs/merge-requests/%d/merge", number)}
	for _, f := range c.Forges {
		switch {
		case f.Source != name:
		case f.Type == config.GitLab:
			return []source.PullRef{request}
		case f.Type == config.GitHub:
			pull.MergeRef = fmt.Sprintf("refs/pull/%d/merge", number)
			return []source.PullRef{pull}
		case f.Type == config.Gitea:
			return []source.PullRef{pull}
		}
	}
	return []source.PullRef{pull, request}
}

// fromPull is what a source would be once a pull request is merged into the commit that is
// followed.
func (w *Work) fromPull(ctx context.Context, c *config.Config, s config.Source, dir string, number int64, followed string, secrets *redact.Registry) (p proposed, err error) {
	if followed == "" {
		return p, fmt.Errorf("plan pull request %d: the commit that source %s follows cannot be read", number, s.Name)
	}
	for i, ref := range refsOf(c, s.Name, number) {
		var head proposed
		if head, err = w.fromSource(ctx, s, filepath.Join(dir, strconv.Itoa(i)), ref.Head, secrets); err != nil {
			var missing *fault.UnavailableError
			if errors.As(err, &missing) && missing.Reason == fault.MissingRef {
				err = advice.Hinted(fmt.Errorf("plan pull request %d: source %s has no %s", number, s.Name, ref.Head), "--pull-request takes the number that the forge shows; a branch is planned with --ref")
				continue
			}
			return p, err
		}
		ref.HeadSHA, ref.Base = head.Snapshot.Revision, followed
		m, err := w.sources[s.Name].Pull(ctx, ref)
		if err != nil {
			return p, fmt.Errorf("merge pull request %d: %w", number, err)
		}
		if len(m.Conflicts) > 0 {
			return p, advice.Hinted(fmt.Errorf("pull request %d cannot be merged: %s", number, m.Conflicts[0]), "update its branch, or plan that as it is with --ref "+ref.Head)
		}
		p.Snapshot, p.what = m.Snapshot, fmt.Sprintf("pull request %d (%s), merged into what is followed", number, wording.Clean(ref.HeadSHA[:7]))
		return p, nil
	}
	return p, err
}
