package rules

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/userdata"
)

// CheckKubeadmVersion reports a Kubernetes version for which weir cannot write a KubeadmConfig.
func CheckKubeadmVersion(r kinds.Reporter, v kinds.Kubernetes) {
	at := path("spec", "template", "spec", "version")
	switch {
	case !v.Known():
		r.Error(at, "missing-required", at.String()+" is required for a KubeadmConfig", "kubeadm's configuration depends on it")
	case v.Major != 1 || v.Minor < userdata.Minimum:
		r.Error(at, "bad-version", fmt.Sprintf("Kubernetes %s is too old for a KubeadmConfig", v.Short()), fmt.Sprintf("1.%d is the oldest", userdata.Minimum))
	}
}

// partitionType matches the types that Cluster API's schema accepts.
var partitionType = lazyregexp.New(`^(Linux|LinuxSwap|LinuxRAID|LVM|Fat32|NTFS|LinuxExtended|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$`)

// CheckKubeadm applies the rules of Cluster API's webhook and schema. It notes fields without effect on
// workers of Kubernetes 1.minor.
func CheckKubeadm(r kinds.Reporter, s *kinds.KubeadmConfigSpec, version string, minor int) {
	for _, ignored := range []struct {
		name string
		set  bool
		why  string
	}{
		{"clusterConfiguration", s.ClusterConfiguration != nil, "the nodes of a pool are workers, which join by joinConfiguration"},
		{"initConfiguration", s.InitConfiguration != nil, "the nodes of a pool are workers, which join by joinConfiguration"},
		{"useExperimentalRetryJoin", s.UseExperimentalRetryJoin, "Cluster API has dropped it: kubeadm tries again by itself"},
	} {
		if ignored.set {
			r.Warn(path("spec", ignored.name), "not-carried", "spec."+ignored.name+" is not used: "+ignored.why, "remove it")
		}
	}
	seen := map[string]bool{}
	for i, f := range s.Files {
		if seen[f.Path] {
			r.Error(path("spec", "files", intent.Index(i), "path"), "duplicate", fmt.Sprintf("spec.files writes %q twice", f.Path), "")
		}
		seen[f.Path] = true
	}
	if s.Ignition != nil && s.Format != "ignition" {
		r.Error(path("spec", "ignition"), "mismatch", "spec.ignition needs spec.format: ignition", "write it, or remove spec.ignition")
	}
	if s.DiskSetup != nil {
		checkPartitions(r, s.DiskSetup.Partitions, version)
	}
	if s.Format != "ignition" {
		WarnInactive(r, s.Users)
	}
	if s.JoinConfiguration != nil {
		checkJoin(r, s.JoinConfiguration, minor)
	}
}

// checkPartitions checks the partitions of a KubeadmConfig: layout or diskLayout, known types, and at most
// 100 percent of a disk. In v1beta2 exactly one of the two layouts is required.
func checkPartitions(r kinds.Reporter, list []kinds.KubeadmPartition, version string) {
	for i, p := range list {
		at := path("spec", "diskSetup", "partitions", intent.Index(i))
		switch both := p.Layout != nil && len(p.DiskLayout) > 0; {
		case version == "v1beta2" && both:
			r.Error(at, "exclusive", at.String()+" has both layout and diskLayout", "write one of them")
		case version == "v1beta2" && p.Layout == nil && len(p.DiskLayout) == 0:
			r.Error(at, "missing-required", at.String()+" needs layout or diskLayout", "write one of them")
		}
		var sum int32
		for j, part := range p.DiskLayout {
			sum += part.Percentage
			if part.Type != "" && !partitionType.MatchString(part.Type) {
				r.Error(at.Join("diskLayout", intent.Index(j), "partitionType"), "bad-value", fmt.Sprintf("%q is not a type of partition", part.Type),
					"it may be Linux, LinuxSwap, LinuxRAID, LVM, Fat32, NTFS, LinuxExtended or a GPT type GUID")
			}
		}
		if sum > 100 {
			r.Error(at.Join("diskLayout"), "out-of-range", fmt.Sprintf("the partitions take %d percent of the disk", sum), "")
		}
	}
}

// checkJoin notes fields that kubeadm's format before v1beta4 does not have, or that workers do not have.
func checkJoin(r kinds.Reporter, j *kinds.JoinConfiguration, minor int) {
	at := path("spec", "joinConfiguration")
	if j.ControlPlane != nil {
		r.Warn(at.Join("controlPlane"), "not-carried", "spec.joinConfiguration.controlPlane is not used: the nodes of a pool are workers", "")
	}
	if minor >= 31 {
		return
	}
	old := fmt.Sprintf("kubeadm of Kubernetes 1.%d reads v1beta3, which does not have it", minor)
	if j.NodeRegistration.ImagePullSerial != nil {
		r.Warn(at.Join("nodeRegistration", "imagePullSerial"), "not-carried", "imagePullSerial is not used: "+old, "it takes effect from 1.31")
	}
	if t := j.Timeouts; t != nil {
		for name, v := range map[string]*int32{
			"controlPlaneComponentHealthCheckSeconds": t.ControlPlaneComponentHealthCheckSeconds, "kubeletHealthCheckSeconds": t.KubeletHealthCheckSeconds,
			"kubernetesAPICallSeconds": t.KubernetesAPICallSeconds, "etcdAPICallSeconds": t.EtcdAPICallSeconds, "discoverySeconds": t.DiscoverySeconds,
		} {
			if v != nil {
				r.Warn(at.Join("timeouts", name), "not-carried", name+" is not used: "+old, "it takes effect from 1.31")
			}
		}
	}
	seen := map[string]bool{}
	for i, a := range j.NodeRegistration.KubeletExtraArgs {
		if seen[a.Name] {
			r.Warn(at.Join("nodeRegistration", "kubeletExtraArgs", intent.Index(i)), "not-carried",
				fmt.Sprintf("the argument %s is written twice, and the last value wins: %s", a.Name, strings.Replace(old, "does not have it", "has a mapping there", 1)), "it may come twice from 1.31")
		}
		seen[a.Name] = true
	}
}
