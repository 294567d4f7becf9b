package awscloud

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/weir-gitops/weir/reconciler/observed"
	"golang.org/x/sync/errgroup"
)

// The two aliases of a template's versions.
const (
	latest   = "$Latest"
	standard = "$Default"
)

// versionPage is the largest page of DescribeLaunchTemplateVersions, and the
// most versions that one call may name.
const versionPage = 200

// wanted holds the versions that are to be read, by the name of their template.
type wanted map[string][]int64

// fillVersions reads the bodies of template versions that no cache holds, in the
// cheaper of two ways: a call for each template, or the account-wide list of
// newest and default versions, which also holds the templates of others.
func (c *Cloud) fillVersions(ctx context.Context, s *observed.State, refs []observed.TemplateRef) error {
	want, err := c.wantedVersions(s, refs)
	if err != nil {
		return err
	}
	if aliases, pages := sweep(s, want); pages < len(want) {
		// Templates of others make the list longer than can be known, so it is
		// given up where it would cost as much as the other way.
		if err := c.sweepVersions(ctx, s, want, aliases, len(want)-1); err != nil && refused(err) == nil {
			return err
		}
	}
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	ids := make(map[string]string, len(want))
	for name := range want {
		ids[name] = s.Templates[name].ID
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		numbers := want[name]
		g.Go(func() error {
			versions, missing, gone, err := c.readVersions(gctx, ids[name], numbers)
			mu.Lock()
			defer mu.Unlock()
			if e := refused(err); e != nil {
				s.Unread.Versions = note(s.Unread.Versions, name, e)
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
			c.addVersions(s, name, versions, missing)
			return nil
		})
	}
	return g.Wait()
}

// wantedVersions groups the references by template, with aliases resolved and
// what is known already left out.
func (c *Cloud) wantedVersions(s *observed.State, refs []observed.TemplateRef) (wanted, error) {
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
			Message: "the version " + strconv.Quote(version) + " of the template " + t.Name + " is no number", Err: err}
	}
	return n, nil
}

// sweep says which aliases would answer what is wanted, and how many pages the
// account-wide list of them has at least.
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
	return aliases, (len(aliases)*len(s.Templates) + versionPage - 1) / versionPage
}

// sweepVersions reads at most limit pages of the account-wide list and takes
// what it finds out of want.
func (c *Cloud) sweepVersions(ctx context.Context, s *observed.State, want wanted, aliases []string, limit int) error {
	names := make(map[string]string, len(want))
	for name := range want {
		names[s.Templates[name].ID] = name
	}
	in := &ec2.DescribeLaunchTemplateVersionsInput{Versions: aliases, MaxResults: aws.Int32(versionPage)}
	return eachPage(ctx, "ec2", "DescribeLaunchTemplateVersions", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := c.ec2.DescribeLaunchTemplateVersions(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, v := range out.LaunchTemplateVersions {
			name, ours := names[aws.ToString(v.LaunchTemplateId)]
			if !ours {
				continue
			}
			number := aws.ToInt64(v.VersionNumber)
			i := slices.Index(want[name], number)
			if i < 0 {
				continue
			}
			c.addVersions(s, name, []observed.TemplateVersion{templateVersion(v)}, nil)
			if want[name] = slices.Delete(want[name], i, i+1); len(want[name]) == 0 {
				delete(want, name)
			}
		}
		if limit--; limit == 0 || len(want) == 0 {
			return nil, nil
		}
		return out.NextToken, nil
	})
}

// addVersions puts versions into the cache and the state.
func (c *Cloud) addVersions(s *observed.State, name string, versions []observed.TemplateVersion, missing []int64) {
	t := s.Templates[name]
	if len(versions) > 0 {
		t.Versions = c.versions.add(t.ID, versions, c.now())
	}
	if len(missing) > 0 {
		t.Missing = cloned(t.Missing)
		for _, n := range missing {
			t.Missing[n] = true
		}
	}
	s.Templates[name] = t
}

// readVersions reads versions of one template. EC2 fails the whole call where
// one of them does not exist, so they are then read one by one. gone says that
// the template itself does not exist any more.
func (c *Cloud) readVersions(ctx context.Context, id string, numbers []int64) (found []observed.TemplateVersion, missing []int64, gone bool, err error) {
	for batch := range slices.Chunk(numbers, versionPage) {
		got, e := c.describeVersions(ctx, id, batch)
		switch {
		case e == nil:
			found = append(found, got...)
		case e.Code == "InvalidLaunchTemplateId.VersionNotFound" && len(batch) == 1:
			missing = append(missing, batch[0])
		case e.Code == "InvalidLaunchTemplateId.VersionNotFound":
			for _, n := range batch {
				f, m, g, err := c.readVersions(ctx, id, []int64{n})
				if err != nil || g {
					return nil, nil, g, err
				}
				found, missing = append(found, f...), append(missing, m...)
			}
		case e.Kind == observed.NotFound:
			return nil, nil, true, nil
		default:
			return nil, nil, false, e
		}
	}
	// A version that AWS left out without a word is missing as well.
	for _, n := range numbers {
		if !slices.ContainsFunc(found, func(v observed.TemplateVersion) bool { return v.Number == n }) && !slices.Contains(missing, n) {
			missing = append(missing, n)
		}
	}
	return found, missing, false, nil
}

func (c *Cloud) describeVersions(ctx context.Context, id string, numbers []int64) ([]observed.TemplateVersion, *observed.Error) {
	in := &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: aws.String(id)}
	for _, n := range numbers {
		in.Versions = append(in.Versions, strconv.FormatInt(n, 10))
	}
	var out []observed.TemplateVersion
	err := eachPage(ctx, "ec2", "DescribeLaunchTemplateVersions", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		page, err := c.ec2.DescribeLaunchTemplateVersions(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, v := range page.LaunchTemplateVersions {
			out = append(out, templateVersion(v))
		}
		return page.NextToken, nil
	})
	return out, classify("ec2", "DescribeLaunchTemplateVersions", err)
}
