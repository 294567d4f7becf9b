package plan

import (
	"cmp"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// wantTemplate is a launch template with every lookup answered.
type wantTemplate struct {
	name   string
	data   intent.TemplateData
	source string // SourceHash; empty until needed where the image is fixed
	lookup intent.Lookup
	root   bool
	needs  int32 // GiB that the image's snapshot asks of the root volume
	tags   map[string]string
	keep   int32 // earlier versions that stay
	// follow says that a newly published image is wanted; otherwise a version
	// keeps the image that it has until something else changes.
	follow bool
	// newest is what AWS publishes now; nil where a manifest names the image. was is what
	// a reviewed plan made of the version, and keeps says that a new version takes the
	// image that the pool has.
	newest *observed.Image
	was    *ReviewedImage
	keeps  bool
	// follows says that the pool follows images, whether or not this plan does.
	follows bool
	hash    string // BodyHash of data, once it was needed
}

// answer returns the answer to a lookup of pool, or records why there is none.
// A lookup that AWS did not answer blocks the pool and never becomes a default.
func (c *work) answer(pool *intent.Pool, l intent.Lookup) (observed.Answer, bool) {
	a, ok := c.in.Answers[l]
	switch {
	case !ok:
		c.blockf(pool, nil, "lookup-unanswered", "the question for "+l.String()+" was not answered", "weir asks again at the next pass")
		return observed.Answer{}, false
	case a.Problem != "" && c.in.stays(pool, a):
		object, path := asksFor(pool, l, a.Code)
		c.noteAt(diag.Warning, object, path, "default-network", "the region has a VPC beside the default one now, which is no answer for new pools any more; the pool's machines stay in the default VPC", "")
		return a, true
	case a.Problem != "" && c.told(pool, a):
		c.blocked = true
		return observed.Answer{}, false
	case a.Problem != "":
		object, path := asksFor(pool, l, a.Code)
		c.blockAt(object, path, a.Code, a.Problem, "")
		return observed.Answer{}, false
	}
	if a.Warning != "" {
		object, path := asksFor(pool, l, a.Code)
		c.noteAt(diag.Warning, object, path, cmp.Or(a.Code, "lookup"), a.Warning, "")
	}
	return a, true
}

// stays reports whether a pool keeps the answer of old: its group runs in the subnets
// of which that is true.
func (in Input) stays(pool *intent.Pool, a observed.Answer) bool {
	if pool.Group == nil || len(a.Lapsed) == 0 {
		return false
	}
	g, ok := in.State.Groups[pool.Group.Name]
	return ok && !g.Deleting && len(g.SubnetIDs) > 0 && !slices.ContainsFunc(g.SubnetIDs, func(id string) bool { return !slices.Contains(a.Lapsed, id) })
}

// told reports whether the problem was said of the pool already, as the answer to
// another of its questions.
func (c *work) told(pool *intent.Pool, a observed.Answer) bool {
	same := func(d diag.Diagnostic) bool {
		return d.Severity == diag.Error && d.Code == a.Code && d.Summary == a.Problem && d.Object == pool.Infrastructure.String()
	}
	return slices.ContainsFunc(c.said, same) || slices.ContainsFunc(c.diags, same)
}

// oneVPC reports security groups of another VPC than the pool's subnets: EC2 launches
// nothing with both.
func (c *work) oneVPC(pool *intent.Pool, subnets observed.Answer) {
	if len(subnets.VPCs) > 1 {
		object, path := asksFor(pool, subnetsOf(pool), "")
		c.blockAt(object, path, "network-mismatch", "the pool's subnets are in several VPCs: "+strings.Join(subnets.VPCs, ", "), "")
		return
	}
	if pool.LaunchTemplate == nil || len(subnets.VPCs) == 0 {
		return
	}
	for _, l := range pool.Lookups() {
		switch l.Kind {
		case intent.CoreSecurityGroups, intent.SecurityGroupsByFilter, intent.SecurityGroupByID:
		default:
			continue
		}
		a := c.in.Answers[l]
		if other := slices.IndexFunc(a.VPCs, func(vpc string) bool { return vpc != subnets.VPCs[0] }); other >= 0 {
			object, path := asksFor(pool, l, a.Code)
			which := "of its security groups " + strings.Join(a.SecurityGroups, ", ") + " some are in "
			if len(a.SecurityGroups) == 1 {
				which = "its security group " + a.SecurityGroups[0] + " is in "
			}
			c.blockAt(object, path, "network-mismatch", "the pool's subnets are in "+subnets.VPCs[0]+", and "+which+a.VPCs[other], "")
		}
	}
}

// subnetsOf is the question for a pool's subnets.
func subnetsOf(pool *intent.Pool) intent.Lookup {
	if pool.Nodegroup != nil {
		return pool.Nodegroup.Subnets
	}
	return pool.Group.Subnets
}

// givenGroupPath is the field that names a security group by its id. Beside groups that
// are found by filters, the intent does not tell which one of the list it is.
func givenGroupPath(pool *intent.Pool, id string) intent.Path {
	at := intent.Path{"spec", "awsLaunchTemplate", "additionalSecurityGroups"}
	t := pool.LaunchTemplate
	i := slices.Index(t.Data.SecurityGroupIDs, id)
	switch filtered := slices.ContainsFunc(t.SecurityGroups, func(l intent.Lookup) bool { return l.Kind == intent.SecurityGroupsByFilter }); {
	case i < 0: // of an interface, which PoolOptions have
		return nil
	case filtered:
		return at
	}
	return at.Join(intent.Index(i), "id")
}

// asksFor is the object and the field that ask a lookup, which code says more about.
func asksFor(pool *intent.Pool, l intent.Lookup, code string) (intent.ObjectRef, intent.Path) {
	switch {
	case code == "launch-template-version-not-found":
		f := foreignTemplate(pool, l)
		return pool.Infrastructure, f.Field()
	case l.Kind == intent.Subnets && l.Zones != "" && pool.FailureDomains:
		return pool.MachinePool, intent.Path{"spec", "failureDomains"}
	case l.Kind == intent.Subnets && l.Zones != "":
		return pool.Infrastructure, intent.Path{"spec", "availabilityZones"}
	}
	return pool.Infrastructure, lookupPath(pool, l)
}

// lookupPath is the field of the pool's infrastructure object that asks a lookup.
func lookupPath(pool *intent.Pool, l intent.Lookup) intent.Path {
	switch l.Kind {
	case intent.ImageByID:
		return intent.Path{"spec", "awsLaunchTemplate", "ami", "id"}
	case intent.ImageForEKS, intent.ImageByName, intent.ImageByParameter:
		return intent.Path{"spec", "awsLaunchTemplate"}
	case intent.Subnets:
		if pool.Kind == intent.NodegroupPool {
			return intent.Path{"spec", "subnetIDs"}
		}
		return intent.Path{"spec", "subnets"}
	case intent.SecurityGroupsByFilter:
		return intent.Path{"spec", "awsLaunchTemplate", "additionalSecurityGroups"}
	case intent.SecurityGroupByID:
		return givenGroupPath(pool, l.Name)
	case intent.Role:
		return intent.Path{"spec", "roleName"}
	case intent.TemplateByName, intent.TemplateByID:
		return foreignTemplate(pool, l).NameField
	}
	return nil
}

// template answers the lookups of the pool's template. ok is false where one
// has no answer; the pool is then blocked.
func (c templates) template(pool *intent.Pool) (want *wantTemplate, ok bool) {
	t := pool.LaunchTemplate
	w := &wantTemplate{name: t.Name, data: t.Data, lookup: t.Image, root: t.RootDevice, follow: pool.FollowImages, follows: pool.FollowImages}
	w.data.BlockDeviceMappings = slices.Clone(t.Data.BlockDeviceMappings)
	w.tags = c.in.Policy.allTags(pool, t.Tags)
	w.keep = c.in.Policy.keepVersions(pool)
	if w.keep != DefaultKeepVersions {
		w.tags[observed.TagKeep] = strconv.Itoa(int(w.keep))
	}
	if n := pool.Nodegroup; n != nil {
		w.tags[observed.TagCluster] = n.ClusterName
	}
	ok = true

	groups := map[string]bool{}
	for _, id := range t.Data.SecurityGroupIDs {
		groups[id] = true
	}
	for _, l := range t.SecurityGroups {
		a, answered := c.answer(pool, l)
		ok = ok && answered
		for _, id := range a.SecurityGroups {
			groups[id] = true
		}
	}
	w.data.SecurityGroupIDs = slices.Sorted(maps.Keys(groups))
	if len(w.data.SecurityGroupIDs) == 0 {
		w.data.SecurityGroupIDs = nil
	}

	placeGroups(&w.data)

	raw, filled := c.userData(pool, t.UserData)
	ok = ok && filled
	if len(raw) > 0 {
		w.data.UserData = base64.StdEncoding.EncodeToString(raw)
	}

	if t.Image.Kind != "" {
		a, answered := c.answer(pool, t.Image)
		ok = ok && answered
		if answered {
			w.newest = a.Image
			w.take(a.Image)
		}
	}
	tidy(&w.data)
	if !w.published() {
		return w, ok
	}
	source := w.data
	if w.root && len(source.BlockDeviceMappings) > 0 {
		// The device name follows from the image, so it is no part of the source.
		source.BlockDeviceMappings = slices.Clone(source.BlockDeviceMappings)
		source.BlockDeviceMappings[0].DeviceName = ""
	}
	w.source = content.HashOfSource(source, c.canonicalImage(t.Image))
	if ok {
		c.chooseImage(pool, w)
	}
	return w, ok
}

// take has the version launch an image.
func (w *wantTemplate) take(im *observed.Image) {
	w.data.ImageID, w.hash = im.ID, ""
	if w.root && len(w.data.BlockDeviceMappings) > 0 {
		w.data.BlockDeviceMappings[0].DeviceName = im.RootDevice
		w.needs = im.RootSize
	}
}

// canonicalImage is canonical, once for each image that the target's pools name.
func (c templates) canonicalImage(image intent.Lookup) []byte {
	out, known := c.images[image]
	if !known {
		out = content.Canonical(image)
		c.images[image] = out
	}
	return out
}

// userData is the bootstrap data as EC2 is sent it, its placeholders filled from
// the EKS cluster.
func (c templates) userData(pool *intent.Pool, u intent.UserData) ([]byte, bool) {
	text, ok := c.userDataText(pool, u)
	if !ok {
		return nil, false
	}
	raw, tooLarge := u.Encode(text)
	if tooLarge != "" {
		c.blockf(pool, nil, "user-data-too-large", tooLarge, "shorten the files and commands of the bootstrap configuration, or fetch them at boot")
	}
	return raw, tooLarge == ""
}

func (c templates) userDataText(pool *intent.Pool, u intent.UserData) (string, bool) {
	if u.FetchesToken {
		return c.fetches(pool, u.Text)
	}
	if u.Cluster.Kind == "" {
		return u.Text, true
	}
	a, ok := c.answer(pool, u.Cluster)
	if !ok {
		return "", false
	}
	if a.Cluster.Endpoint == "" || a.Cluster.CertificateAuthority == "" {
		c.blockf(pool, nil, "cluster-not-ready", "the EKS cluster "+a.Cluster.Name+" is "+a.Cluster.Status+" and has no endpoint and certificate, which the bootstrap data needs", "make the cluster anew, or take the pool out of Git")
		return "", false
	}
	return strings.NewReplacer(
		intent.PlaceholderEndpoint, a.Cluster.Endpoint,
		intent.PlaceholderCA, a.Cluster.CertificateAuthority,
		intent.PlaceholderServiceCIDR, a.Cluster.ServiceCIDR,
	).Replace(u.Text), true
}
