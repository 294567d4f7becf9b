package manifest

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/userdata"
)

// kubeadmData writes the cloud-config of a worker that joins by kubeadm.
func (b *builder) kubeadmData(d *draft, o *object[KubeadmConfigSpec], r reporter) intent.UserData {
	s := &o.Spec
	if s.Format == "ignition" {
		d.block(path("spec", "format"), r, "ignition-not-supported", "Ignition user data is not supported by this version", "")
		return intent.UserData{}
	}
	if !d.version.known() {
		d.mp.error(path("spec", "template", "spec", "version"), "missing-required", "spec.template.spec.version is required for a KubeadmConfig",
			"kubeadm's configuration depends on it")
		return intent.UserData{}
	}
	if d.version.major != 1 || d.version.minor < userdata.Minimum {
		d.mp.error(path("spec", "template", "spec", "version"), "bad-version", fmt.Sprintf("Kubernetes %s is too old for a KubeadmConfig", d.version.short()),
			fmt.Sprintf("1.%d is the oldest", userdata.Minimum))
		return intent.UserData{}
	}
	in := userdata.Kubeadm{BootCommands: s.BootCommands, PreCommands: s.PreKubeadmCommands, PostCommands: s.PostKubeadmCommands, Verbosity: s.Verbosity}
	var secret bool
	in.CloudInit, secret = b.cloudInit(r, s.Files, s.Users, s.NTP, s.Mounts)
	if s.DiskSetup != nil {
		in.DiskSetup = &userdata.DiskSetup{Partitions: s.DiskSetup.Partitions}
		for _, f := range s.DiskSetup.Filesystems {
			f.filesystem.ReplaceFS = f.ReplaceFS
			in.DiskSetup.Filesystems = append(in.DiskSetup.Filesystems, f.filesystem)
		}
	}
	join := s.JoinConfiguration
	if join == nil {
		join = &JoinConfiguration{}
	}
	if join.ControlPlane != nil {
		r.warn(path("spec", "joinConfiguration", "controlPlane"), "not-carried", "spec.joinConfiguration.controlPlane is not used: the nodes of a pool are workers", "")
	}
	in.Join = joinOf(join, d.version.minor)
	d.discover(&in.Join, join, r)
	if len(d.Blocked) > 0 || d.faults.hasErrors() {
		return intent.UserData{}
	}
	out, err := in.Text()
	if err != nil {
		r.error(path("spec", "joinConfiguration"), "bad-value", err.Error(), "")
	}
	return intent.UserData{Text: out, Format: "cloud-config", Secret: secret || in.Join.Token != "" || in.Join.TLSBootstrapToken != ""}
}

// discover fills how a node finds and trusts the control plane. Cluster API
// mints tokens and knows the CA; here they come from the manifests, and what is
// missing blocks the pool.
func (d *draft) discover(join *userdata.Join, from *JoinConfiguration, r reporter) {
	at := path("spec", "joinConfiguration", "discovery")
	disc := from.Discovery
	join.TLSBootstrapToken = disc.TLSBootstrapToken
	if disc.File != nil {
		if disc.File.KubeConfig != nil {
			r.unsupported(at.Join("file", "kubeConfig"), "discovery.file.kubeConfig", "write the file with spec.files and name it in kubeConfigPath")
		}
		join.DiscoveryFile = disc.File.KubeConfigPath
		return
	}
	t := disc.BootstrapToken
	if t == nil {
		t = &BootstrapToken{}
	}
	join.Token, join.CACertHashes, join.UnsafeSkipCA = t.Token, t.CACertHashes, t.UnsafeSkipCAVerification
	join.APIServerEndpoint = t.APIServerEndpoint
	if join.APIServerEndpoint == "" {
		join.APIServerEndpoint = d.cluster.hostPort()
	}
	var missing []string
	if join.Token == "" {
		missing = append(missing, "a token (bootstrapToken.token)")
	}
	if join.APIServerEndpoint == "" {
		missing = append(missing, "the API server's endpoint (bootstrapToken.apiServerEndpoint, or Cluster.spec.controlPlaneEndpoint)")
	}
	if len(join.CACertHashes) == 0 && !join.UnsafeSkipCA {
		missing = append(missing, "the CA's hashes (bootstrapToken.caCertHashes)")
	}
	if len(missing) > 0 {
		d.block(at, r, "kubeadm-join-incomplete", fmt.Sprintf("the nodes of %s cannot join: %s is missing: %s", d.MachinePool, at, strings.Join(missing, ", ")),
			"add them under spec.joinConfiguration.discovery of "+r.ref.String()+" by a patch, or give the whole user data in a Secret that bootstrap.dataSecretName names")
	}
}

// joinOf copies what does not depend on the cluster.
func joinOf(j *JoinConfiguration, minor int) userdata.Join {
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
		out.Timeouts.Discovery = t.String()
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
