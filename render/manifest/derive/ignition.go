package derive

import (
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/userdata"
)

// ignition writes a KubeadmConfig as Ignition, in the version in the pool's spec.ignition.
func (w *writer) ignition(d *draft, in userdata.Kubeadm, s *kinds.KubeadmConfigSpec, r kinds.Reporter) string {
	var o userdata.Ignition
	if s.Ignition != nil && s.Ignition.ContainerLinuxConfig != nil {
		o.AdditionalConfig, o.Strict = s.Ignition.ContainerLinuxConfig.AdditionalConfig, s.Ignition.ContainerLinuxConfig.Strict
	}
	var pool *kinds.Ignition
	if p, ok := w.index.Pools[kinds.KeyOf(d.Infrastructure)]; ok && d.Kind == intent.GroupPool {
		if pool = p.Spec.Ignition; pool != nil && p.Source.Has("spec", "ignition", "storageType") {
			d.checkIgnitionStorage(pool)
		}
	}
	if pool != nil {
		o.Version = pool.Version
		if p := pool.Proxy; p != nil {
			o.Proxy = &userdata.IgnitionProxy{HTTPProxy: p.HTTPProxy, HTTPSProxy: p.HTTPSProxy, NoProxy: p.NoProxy}
		}
		if pool.TLS != nil {
			o.CertificateAuthorities = pool.TLS.CertificateAuthorities
		}
	}
	if node := in.Join.NodeName; strings.Contains(node, "{{") {
		at := path("spec", "joinConfiguration", "nodeRegistration", "name")
		r.Warn(at, "user-data-jinja", at.String()+" has a jinja expression, which nothing expands in Ignition", "put a variable there, and a command in preKubeadmCommands that fills it in /etc/kubeadm.yml")
	}
	text, problems := in.Ignition(o)
	for _, p := range problems {
		at, err := intent.ParsePath("spec." + p.Field)
		if err != nil {
			at = path("spec")
		}
		if p.Warning {
			r.Warn(at, "ignition-config", at.String()+": "+p.Message, "")
		} else {
			r.Error(at, "ignition-config", at.String()+" cannot be written as Ignition: "+p.Message, "")
		}
	}
	return text
}

// checkIgnitionStorage refuses a pool that requests a bucket for its user data. weir puts user data into the
// launch template, which more people can read. If the manifest does not request a storage, weir uses the
// launch template.
func (d *draft) checkIgnitionStorage(i *kinds.Ignition) {
	if i.StorageType == "ClusterObjectStore" {
		d.AtPool.Error(path("spec", "ignition", "storageType"), "ignition-object-store",
			"the user data should go to the cluster's S3 bucket, and weir puts user data into the launch template",
			"write storageType: UnencryptedUserData to have it there, unencrypted, as cloud-init's is, or leave storageType out")
	}
}
