package template

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Want is a launch template with every lookup answered.
type Want struct {
	name   string
	Data   intent.TemplateData
	source string // SourceHash; empty until needed if the image is fixed
	lookup intent.Lookup
	root   bool
	tags   map[string]string
	keep   int32 // number of earlier versions to keep
	// follow is set if a newly published image must be used. Otherwise a version keeps its image
	// until something else changes.
	follow bool
	// newest is the image that AWS publishes now, nil if a manifest names the image. was is the
	// image in a reviewed plan. keeps is set if a new version takes the image that the pool has.
	newest *observed.Image
	was    *model.ReviewedImage
	keeps  bool
	// follows reports whether the pool follows images, regardless of this plan.
	follows bool
	hash    string // BodyHash of Data, empty until needed
}

// template answers the lookups of the pool's template. If a lookup has no answer, ok is false and
// the pool is blocked.
func (c Planner) template(pool *intent.Pool) (want *Want, ok bool) {
	t := pool.LaunchTemplate
	w := &Want{name: t.Name, Data: t.Data, lookup: t.Image, root: t.RootDevice, follow: pool.FollowImages, follows: pool.FollowImages}
	w.Data.BlockDeviceMappings = slices.Clone(t.Data.BlockDeviceMappings)
	w.tags = c.In.Policy.AllTags(pool, t.Tags)
	w.keep = keepVersions(c.In.Policy, pool)
	if w.keep != model.DefaultKeepVersions {
		w.tags[observed.TagKeep] = strconv.Itoa(int(w.keep))
	}
	if n := pool.Nodegroup; n != nil {
		w.tags[observed.TagCluster] = n.ClusterName
	}
	w.Data.SecurityGroupIDs, ok = c.securityGroups(pool)
	moveSecurityGroups(&w.Data)

	raw, filled := bootstrap{c.Work, pool}.userData(t.UserData)
	ok = ok && filled
	if len(raw) > 0 {
		w.Data.UserData = base64.StdEncoding.EncodeToString(raw)
	}

	if t.Image.Kind != "" {
		a, answered := c.Answer(pool, t.Image)
		ok = ok && answered
		if answered {
			w.newest = a.Image
			w.setImage(a.Image)
		}
	}
	tidy(&w.Data)
	if !w.published() {
		return w, ok
	}
	source := w.Data
	if w.root && len(source.BlockDeviceMappings) > 0 {
		// The device name follows from the image, so it is not part of the source.
		source.BlockDeviceMappings = slices.Clone(source.BlockDeviceMappings)
		source.BlockDeviceMappings[0].DeviceName = ""
	}
	image, known := c.Images[t.Image]
	if !known {
		image = content.Canonical(t.Image)
		c.Images[t.Image] = image
	}
	w.source = content.HashOfSource(source, image)
	if ok {
		c.chooseImage(pool, w)
	}
	return w, ok
}

// securityGroups returns the security groups of a pool's template, or nil. ok is false if a lookup
// has no answer.
func (c Planner) securityGroups(pool *intent.Pool) (ids []string, ok bool) {
	ok = true
	groups := map[string]bool{}
	for _, id := range pool.LaunchTemplate.Data.SecurityGroupIDs {
		groups[id] = true
	}
	for _, l := range pool.LaunchTemplate.SecurityGroups {
		a, answered := c.Answer(pool, l)
		ok = ok && answered
		for _, id := range a.SecurityGroups {
			groups[id] = true
		}
	}
	if len(groups) == 0 {
		return nil, ok
	}
	return slices.Sorted(maps.Keys(groups)), ok
}

// setImage sets the image that the version launches.
func (w *Want) setImage(im *observed.Image) {
	w.Data.ImageID, w.hash = im.ID, ""
	if w.root && len(w.Data.BlockDeviceMappings) > 0 {
		w.Data.BlockDeviceMappings[0].DeviceName = im.RootDevice
	}
}

// bootstrap builds the user data of a pool.
type bootstrap struct {
	work *model.Work
	pool *intent.Pool
}

// userData returns the bootstrap data in the form for EC2, with placeholders filled from the EKS
// cluster.
func (b bootstrap) userData(u intent.UserData) ([]byte, bool) {
	text, ok := b.userDataText(u)
	if !ok {
		return nil, false
	}
	raw, tooLarge := u.Encode(text)
	switch {
	case tooLarge != "" && u.AnySize: // a plan that nobody applies
		return []byte(text), true
	case tooLarge != "" && u.Mark != "": // its size would reveal the size of its secrets
		tooLarge = fmt.Sprintf("the user data is larger than EC2 allows, which is %d bytes", intent.UserDataLimit)
		fallthrough
	case tooLarge != "":
		b.work.Blockf(b.pool, nil, "user-data-too-large", tooLarge, "shorten the files and commands of the bootstrap configuration, or fetch them at boot")
	}
	return raw, tooLarge == ""
}

// userDataText returns the user data with the cluster's endpoint, certificate and network filled
// in. It returns false while they are unknown, and blocks the pool if the cluster has none yet.
func (b bootstrap) userDataText(u intent.UserData) (string, bool) {
	if u.FetchesToken {
		return b.fetches(u.Text)
	}
	if u.Cluster.Kind == "" {
		return u.Text, true
	}
	a, ok := b.work.Answer(b.pool, u.Cluster)
	if !ok {
		return "", false
	}
	if a.Cluster.Endpoint == "" || a.Cluster.CertificateAuthority == "" {
		b.work.Blockf(b.pool, nil, "cluster-not-ready", "the EKS cluster "+a.Cluster.Name+" is "+a.Cluster.Status+" and has no endpoint and certificate, which the bootstrap data needs", "create the cluster again, or remove the pool from Git")
		return "", false
	}
	return strings.NewReplacer(
		intent.PlaceholderEndpoint, a.Cluster.Endpoint,
		intent.PlaceholderCA, a.Cluster.CertificateAuthority,
		intent.PlaceholderServiceCIDR, a.Cluster.ServiceCIDR,
	).Replace(u.Text), true
}

// fetches fills the user data with the parameter from which a pool's machines fetch their join
// token.
func (b bootstrap) fetches(text string) (string, bool) {
	if b.work.In.Policy.JoinTokens.Prefix == "" {
		b.work.Blockf(b.pool, nil, "join-token-not-kept", "the nodes of pool "+b.pool.Key.String()+" cannot join: "+b.pool.Bootstrap.String()+" has no join token, and weir keeps none for the target",
			b.work.In.Policy.JoinTokens.HowTo()+"; or write bootstrapToken.token or file under spec.joinConfiguration.discovery, or name a Secret in bootstrap.dataSecretName")
		return "", false
	}
	for i := range b.work.In.Set.Pools {
		other := &b.work.In.Set.Pools[i]
		if other.ClusterKey != b.pool.ClusterKey && other.LaunchTemplate != nil && other.LaunchTemplate.UserData.FetchesToken {
			b.work.Blockf(b.pool, nil, "join-token-clusters", "weir keeps no join token for pool "+b.pool.Key.String()+": the target has pools without tokens in cluster "+b.pool.ClusterKey.String()+" and in cluster "+other.ClusterKey.String()+", and its kubeconfig is of one",
				"give each cluster a target of its own")
			return "", false
		}
	}
	name := b.work.In.Policy.JoinParameter(model.JoinKey(b.pool))
	b.profileNote(name)
	if b.work.In.Policy.JoinTokens.Once {
		b.work.Note(diag.Warning, b.pool, nil, "join-token-once", "no daemon renews the join token of pool "+b.pool.Key.String()+": machines that start more than 12 hours after an apply may not be able to join",
			"apply at least every 12 hours, with --kubeconfig; or let weir run keep the tokens")
	}
	return strings.NewReplacer(intent.PlaceholderJoinParameter, name, intent.PlaceholderRegion, b.work.In.Policy.Region).Replace(text), true
}

// profileNote reports which permission the machines of a pool need to fetch their token. It does so
// before the template exists, or as long as nothing can grant the permission.
func (b bootstrap) profileNote(parameter string) {
	at := intent.Path{"spec", "awsLaunchTemplate", "iamInstanceProfile"}
	resource := "ssm:GetParameter on parameter " + parameter
	if b.pool.LaunchTemplate.Data.IamInstanceProfile == nil && b.pool.Nodegroup == nil {
		b.work.Note(diag.Warning, b.pool, at, "join-token-profile", "the machines of pool "+b.pool.Key.String()+" have no instance profile and cannot fetch their join token", "name one in iamInstanceProfile whose role allows "+resource)
		return
	}
	if _, stands := b.work.In.State.Templates[b.pool.LaunchTemplate.Name]; !stands {
		b.work.Note(diag.Info, b.pool, at, "join-token-profile", "the machines of pool "+b.pool.Key.String()+" fetch their join token: the role of their instance profile must allow "+resource, "")
	}
}
