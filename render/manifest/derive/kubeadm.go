package derive

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/manifest/rules"
	"github.com/weir-gitops/weir/render/userdata"
)

// kubeadmData returns the cloud-config of a worker that joins with kubeadm.
func (w *writer) kubeadmData(d *draft, o *kinds.Decoded[kinds.KubeadmConfigSpec], r kinds.Reporter) intent.UserData {
	s := &o.Spec
	rules.CheckKubeadmVersion(d.AtMachinePool, d.version)
	minor := max(d.version.Minor, userdata.Minimum) // with a valid minor version, the other faults are found too
	rules.CheckKubeadm(r, s, kinds.Version(o.APIVersion), minor)
	in := userdata.Kubeadm{BootCommands: s.BootCommands, PreCommands: s.PreKubeadmCommands, PostCommands: s.PostKubeadmCommands, Verbosity: s.Verbosity}
	var secret bool
	in.CloudInit, secret = w.cloudInit(r, &s.CloudInit)
	in.DiskSetup = s.DiskSetup.UserData()
	join := s.JoinConfiguration
	if join == nil {
		join = &kinds.JoinConfiguration{}
	}
	in.Join = joinOf(join, minor)
	d.discover(&in, join, d.fetchesBy(s.Format), r)
	if len(d.Blocked) > 0 || d.Faults.HasErrors() {
		return intent.UserData{}
	}
	out := intent.UserData{Format: "cloud-config", FetchesToken: in.Join.Fetched != nil, Secret: secret || in.Join.Token != "" || in.Join.TLSBootstrapToken != ""}
	if s.Format == "ignition" {
		out.Text, out.Format = w.ignition(d, in, s, r), "ignition"
		return out
	}
	text, err := in.Text()
	if err != nil {
		r.Error(path("spec", "joinConfiguration"), "bad-value", err.Error(), "")
	}
	out.Text = text
	return out
}

// discover sets how a node finds and trusts the control plane. If the image has a program to fetch the values
// that the manifests do not set, the node fetches them. Otherwise missing values block the pool.
func (d *draft) discover(in *userdata.Kubeadm, from *kinds.JoinConfiguration, fetchesBy string, r kinds.Reporter) {
	at := path("spec", "joinConfiguration", "discovery")
	join, disc := &in.Join, from.Discovery
	join.TLSBootstrapToken = disc.TLSBootstrapToken
	if disc.File != nil {
		join.DiscoveryFile = disc.File.KubeConfigPath
		if k := disc.File.KubeConfig; k != nil {
			d.discoveryFile(in, disc.File.KubeConfigPath, k, r)
		}
		return
	}
	t := disc.BootstrapToken
	if t == nil {
		t = &kinds.BootstrapToken{}
	}
	join.Token, join.CACertHashes, join.UnsafeSkipCA = t.Token, t.CACertHashes, t.UnsafeSkipCAVerification
	join.APIServerEndpoint = t.APIServerEndpoint
	if join.APIServerEndpoint == "" {
		join.APIServerEndpoint = d.cluster.hostPort()
	}
	if join.Token == "" && fetchesBy != "" {
		d.fetchToken(join, at, fetchesBy, r)
		return
	}
	var missing []string
	if join.Token == "" {
		missing = append(missing, "a token (bootstrapToken.token), which this image cannot fetch, because it has no AWS CLI")
	}
	if join.APIServerEndpoint == "" {
		missing = append(missing, "the API server's endpoint (bootstrapToken.apiServerEndpoint, or Cluster.spec.controlPlaneEndpoint)")
	}
	if len(join.CACertHashes) == 0 && !join.UnsafeSkipCA {
		missing = append(missing, "the CA's hashes (bootstrapToken.caCertHashes)")
	}
	d.reportMissingJoin(at, missing, r)
}

// reportMissingJoin blocks the pool if values are missing that nodes need to join.
func (d *draft) reportMissingJoin(at intent.Path, missing []string, r kinds.Reporter) {
	if len(missing) > 0 {
		d.block(at, r, "kubeadm-join-incomplete", fmt.Sprintf("the nodes of %s cannot join: %s is missing: %s", d.MachinePool, at, strings.Join(missing, ", ")),
			"add them under spec.joinConfiguration.discovery of "+r.Ref.String()+" by a patch, or give the whole user data in a Secret that bootstrap.dataSecretName names")
	}
}

// discoveryFile adds the kubeconfig for discovery, after the other files of the configuration, as Cluster API
// does.
func (d *draft) discoveryFile(in *userdata.Kubeadm, file string, k *kinds.DiscoveryKube, r kinds.Reporter) {
	at := path("spec", "joinConfiguration", "discovery", "file", "kubeConfig")
	if k.User == nil || (k.User.AuthProvider == nil) == (k.User.Exec == nil) {
		r.Error(at.Join("user"), "exclusive", at.Join("user").String()+" must have authProvider or exec", "write one of them")
		return
	}
	out := userdata.Kubeconfig{AuthProvider: k.User.AuthProvider, Exec: k.User.Exec}
	if c := k.Cluster; c != nil {
		out.Server, out.TLSServerName, out.ProxyURL = c.Server, c.TLSServerName, c.ProxyURL
		out.InsecureSkipTLSVerify, out.CertificateAuthority = c.InsecureSkipTLSVerify, c.CertificateAuthorityData
	}
	if _, err := kinds.DecodeBase64(out.CertificateAuthority); err != nil {
		r.Error(at.Join("cluster", "certificateAuthorityData"), "bad-value", at.Join("cluster", "certificateAuthorityData").String()+" is not base64", "write the PEM certificate in base64")
	}
	if host := d.cluster.hostPort(); out.Server == "" && host != "" {
		out.Server = "https://" + host
	}
	var missing []string
	if out.Server == "" {
		missing = append(missing, "the API server's address (cluster.server, or Cluster.spec.controlPlaneEndpoint)")
	}
	if out.CertificateAuthority == "" && !out.InsecureSkipTLSVerify {
		missing = append(missing, "the CA's certificate (cluster.certificateAuthorityData)")
	}
	d.reportMissingJoin(at, missing, r)
	written, err := out.File(file)
	if err != nil {
		r.Error(at, "bad-value", err.Error(), "")
	}
	in.Files = append(in.Files, written)
}

// joinOf converts the settings of a JoinConfiguration that do not depend on the cluster. minor is the minor
// version of Kubernetes.
func joinOf(j *kinds.JoinConfiguration, minor int) userdata.Join {
	n := j.NodeRegistration
	out := userdata.Join{
		Minor: minor, CACertPath: j.CACertPath, NodeName: n.Name, CRISocket: n.CRISocket, KubeletExtraArgs: n.KubeletExtraArgs,
		IgnorePreflightErrors: n.IgnorePreflightErrors, ImagePullPolicy: n.ImagePullPolicy, ImagePullSerial: n.ImagePullSerial, SkipPhases: j.SkipPhases,
	}
	if n.Taints != nil {
		out.KeepNoTaints = true
		for _, t := range *n.Taints {
			out.Taints = append(out.Taints, t.Taint)
		}
	}
	if j.Patches != nil {
		out.PatchesDirectory = j.Patches.Directory
	}
	if t := j.Discovery.Timeout; t != nil {
		// Cluster API accepts only whole seconds for this member, in both versions.
		out.Timeouts.TLSBootstrap = t.Truncate(time.Second).String()
	}
	if t := j.Timeouts; t != nil {
		out.Timeouts = userdata.Timeouts{
			ControlPlaneComponentHealthCheck: inSeconds(t.ControlPlaneComponentHealthCheckSeconds), KubeletHealthCheck: inSeconds(t.KubeletHealthCheckSeconds),
			KubernetesAPICall: inSeconds(t.KubernetesAPICallSeconds), EtcdAPICall: inSeconds(t.EtcdAPICallSeconds),
			TLSBootstrap: inSeconds(t.TLSBootstrapSeconds), Discovery: inSeconds(t.DiscoverySeconds),
		}
	}
	return out
}

func inSeconds(n *int32) string {
	if n == nil {
		return ""
	}
	return (time.Duration(*n) * time.Second).String()
}
