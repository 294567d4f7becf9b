// Package kinds defines the objects that weir reads: a Go type for each kind, decoding with defaults, JSON
// Schemas of the same types, and an index of all objects of a render.
//
// A spec is a struct. The tags of a field have its key, the versions that have it, its default, and whether
// it is required. The oracle module writes limits.txt, which has the limits of CAPA's schemas. For AWS
// members that PoolOptions sets, the structs of package intent and their rows in render/field are used, so
// that no field is declared twice. The package also has everything outside of a spec that several packages
// need: annotations, the keys that name a launch template, Kubernetes versions, and the names that CAPA
// generates.
//
// This package does not check combinations of fields. Package rules does.
package kinds

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/intent"
)

// API groups.
const (
	groupCluster        = "cluster.x-k8s.io"
	groupExpCluster     = "exp.cluster.x-k8s.io"
	GroupInfrastructure = "infrastructure.cluster.x-k8s.io"
	groupControlPlane   = "controlplane.cluster.x-k8s.io"
	groupBootstrap      = "bootstrap.cluster.x-k8s.io"
	GroupWeir           = "weir.dev"
)

// use is how weir treats a kind.
type use int

const (
	ignored  use = iota // not a kind of weir
	read                // decoded, checked and used
	onDemand            // decoded if another object refers to it
	refused             // never accepted
	later               // recognized, but not supported by this version
)

// kind is a kind that weir recognizes.
type kind struct {
	group, name string
	versions    []string
	use         use
	// object is the Go type of the whole object, or nil if the kind is not read.
	object reflect.Type
}

var betaVersions = []string{"v1beta1", "v1beta2"}

// known returns all kinds that weir recognizes.
var known = sync.OnceValue(func() []kind {
	return []kind{
		{groupCluster, "MachinePool", betaVersions, read, reflect.TypeFor[Decoded[MachinePoolSpec]]()},
		{groupExpCluster, "MachinePool", []string{"v1alpha3", "v1alpha4"}, read, reflect.TypeFor[Decoded[MachinePoolSpec]]()},
		{groupCluster, "Cluster", betaVersions, read, reflect.TypeFor[Decoded[ClusterSpec]]()},
		{GroupInfrastructure, "AWSMachinePool", betaVersions, read, reflect.TypeFor[Decoded[AWSMachinePoolSpec]]()},
		{GroupInfrastructure, "AWSManagedMachinePool", betaVersions, read, reflect.TypeFor[Decoded[AWSManagedMachinePoolSpec]]()},
		{GroupInfrastructure, "AWSCluster", betaVersions, read, reflect.TypeFor[Decoded[AWSClusterSpec]]()},
		{GroupInfrastructure, "AWSManagedCluster", betaVersions, read, reflect.TypeFor[Decoded[AWSManagedClusterSpec]]()},
		{groupControlPlane, "AWSManagedControlPlane", betaVersions, read, reflect.TypeFor[Decoded[AWSManagedControlPlaneSpec]]()},
		{GroupInfrastructure, "AWSClusterRoleIdentity", betaVersions, read, reflect.TypeFor[Decoded[AWSClusterRoleIdentitySpec]]()},
		{GroupInfrastructure, "AWSClusterControllerIdentity", betaVersions, read, reflect.TypeFor[Decoded[AWSClusterControllerIdentitySpec]]()},
		{GroupInfrastructure, "AWSClusterStaticIdentity", betaVersions, refused, nil},
		{groupBootstrap, "KubeadmConfig", betaVersions, read, reflect.TypeFor[Decoded[KubeadmConfigSpec]]()},
		{groupBootstrap, "EKSConfig", betaVersions, read, reflect.TypeFor[Decoded[EKSConfigSpec]]()},
		{groupBootstrap, "NodeadmConfig", []string{"v1beta2"}, read, reflect.TypeFor[Decoded[NodeadmConfigSpec]]()},
		{"", "Secret", []string{"v1"}, onDemand, nil},
		{"", "ConfigMap", []string{"v1"}, onDemand, nil},
		{GroupInfrastructure, "AWSLaunchConfig", []string{"v1beta2"}, read, reflect.TypeFor[Decoded[LaunchTemplate]]()},
		{GroupInfrastructure, "AWSLaunchConfigTemplate", []string{"v1beta2"}, read, reflect.TypeFor[Decoded[AWSLaunchConfigTemplateSpec]]()},
		{GroupWeir, "FleetRollout", []string{"v1alpha1"}, read, reflect.TypeFor[Decoded[FleetRolloutSpec]]()},
		{GroupWeir, "PoolOptions", []string{"v1alpha1"}, read, reflect.TypeFor[Decoded[PoolOptionsSpec]]()},
	}
})

// findKind returns the entry of an object's kind. ok is false for a kind that weir does not recognize.
func findKind(known []kind, ref intent.ObjectRef) (kind, bool) {
	i := slices.IndexFunc(known, func(k kind) bool { return k.group == ref.Group() && k.name == ref.Kind })
	if i < 0 {
		return kind{}, false
	}
	return known[i], true
}

// Version returns the part of an apiVersion after the slash.
func Version(apiVersion string) string {
	return apiVersion[strings.LastIndex(apiVersion, "/")+1:]
}

// Reads reports whether weir reads all objects of a kind, so that their variables must have values. This
// excludes Secrets and ConfigMaps, which often contain scripts with their own ${…}.
func Reads(ref intent.ObjectRef) bool {
	k, ok := findKind(known(), ref)
	return ok && k.use == read
}

// mayHoldSecrets are the kinds that user data is made from. Secrets are expected there, and weir shows
// nothing of these objects.
var mayHoldSecrets = []string{"KubeadmConfig", "EKSConfig", "NodeadmConfig", "Secret", "ConfigMap"}

// Plain reports whether weir reads an object and makes no user data from it. Everybody with read access to
// AWS can read its fields, and plans show them.
func Plain(ref intent.ObjectRef) bool {
	return !slices.Contains(mayHoldSecrets, ref.Kind) && Reads(ref)
}
