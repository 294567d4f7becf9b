package oracle

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	infrav1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta1"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	ekscontrolplanev1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta1"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	ekswebhooks "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/webhooks"
	expinfrav1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta1"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	expwebhooks "sigs.k8s.io/cluster-api-provider-aws/v2/exp/webhooks"
	infrawebhooks "sigs.k8s.io/cluster-api-provider-aws/v2/webhooks"
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// The modules whose custom resource definitions are read.
const (
	capa      = "sigs.k8s.io/cluster-api-provider-aws/v2"
	capi      = "sigs.k8s.io/cluster-api"
	crds      = "config/crd/bases"
	bootstrap = "bootstrap/kubeadm/config/crd/bases"
)

// subject is one version of a kind.
type subject struct {
	kinds.SchemaVersion
	// module and file hold the custom resource definition.
	module, file string
	// new makes an object of the version, hub one of the version that webhooks
	// take; nil where the version is that one.
	new func() runtime.Object
	hub func() conversion.Hub
	// webhook is nil where there is none that can be called from here.
	webhook webhook
}

// webhook is what admission calls.
type webhook interface {
	Default(ctx context.Context, obj runtime.Object) error
	ValidateCreate(ctx context.Context, obj runtime.Object) (admission.Warnings, error)
}

func object[T any, P interface {
	*T
	runtime.Object
}]() runtime.Object {
	return P(new(T))
}

func makeHub[T any, P interface {
	*T
	conversion.Hub
}]() conversion.Hub {
	return P(new(T))
}

// subjects are the kinds that weir reads, in the versions that the pinned
// releases have: MachinePool of exp.cluster.x-k8s.io is older than they are, and so is
// AWSManagedCluster v1beta1.
func subjects() []subject {
	kind := func(group, version, kind string) kinds.SchemaVersion {
		return kinds.SchemaVersion{APIVersion: group + "/" + version, Kind: kind}
	}
	const (
		core  = "cluster.x-k8s.io"
		infra = "infrastructure.cluster.x-k8s.io"
		plane = "controlplane.cluster.x-k8s.io"
		boot  = "bootstrap.cluster.x-k8s.io"
	)
	file := func(group, plural string) string { return crds + "/" + group + "_" + plural + ".yaml" }
	kubeadm := bootstrap + "/" + boot + "_kubeadmconfigs.yaml"
	return []subject{
		{kind(core, "v1beta1", "MachinePool"), capi, file(core, "machinepools"), object[clusterv1beta1.MachinePool], nil, nil},
		{kind(core, "v1beta2", "MachinePool"), capi, file(core, "machinepools"), object[clusterv1.MachinePool], nil, nil},
		{kind(core, "v1beta1", "Cluster"), capi, file(core, "clusters"), object[clusterv1beta1.Cluster], nil, nil},
		{kind(core, "v1beta2", "Cluster"), capi, file(core, "clusters"), object[clusterv1.Cluster], nil, nil},
		{kind(boot, "v1beta1", "KubeadmConfig"), capi, kubeadm, object[bootstrapv1beta1.KubeadmConfig], nil, nil},
		{kind(boot, "v1beta2", "KubeadmConfig"), capi, kubeadm, object[bootstrapv1.KubeadmConfig], nil, nil},
		{kind(boot, "v1beta1", "EKSConfig"), capa, file(boot, "eksconfigs"), object[eksbootstrapv1beta1.EKSConfig], makeHub[eksbootstrapv1.EKSConfig], nil},
		{kind(boot, "v1beta2", "EKSConfig"), capa, file(boot, "eksconfigs"), object[eksbootstrapv1.EKSConfig], nil, nil},
		{kind(boot, "v1beta2", "NodeadmConfig"), capa, file(boot, "nodeadmconfigs"), object[eksbootstrapv1.NodeadmConfig], nil, nil},
		{kind(infra, "v1beta1", "AWSMachinePool"), capa, file(infra, "awsmachinepools"), object[expinfrav1beta1.AWSMachinePool], makeHub[expinfrav1.AWSMachinePool], &expwebhooks.AWSMachinePool{}},
		{kind(infra, "v1beta2", "AWSMachinePool"), capa, file(infra, "awsmachinepools"), object[expinfrav1.AWSMachinePool], nil, &expwebhooks.AWSMachinePool{}},
		{kind(infra, "v1beta1", "AWSManagedMachinePool"), capa, file(infra, "awsmanagedmachinepools"), object[expinfrav1beta1.AWSManagedMachinePool], makeHub[expinfrav1.AWSManagedMachinePool], &expwebhooks.AWSManagedMachinePool{}},
		{kind(infra, "v1beta2", "AWSManagedMachinePool"), capa, file(infra, "awsmanagedmachinepools"), object[expinfrav1.AWSManagedMachinePool], nil, &expwebhooks.AWSManagedMachinePool{}},
		{kind(infra, "v1beta1", "AWSCluster"), capa, file(infra, "awsclusters"), object[infrav1beta1.AWSCluster], makeHub[infrav1.AWSCluster], &infrawebhooks.AWSCluster{}},
		{kind(infra, "v1beta2", "AWSCluster"), capa, file(infra, "awsclusters"), object[infrav1.AWSCluster], nil, &infrawebhooks.AWSCluster{}},
		{kind(infra, "v1beta2", "AWSManagedCluster"), capa, file(infra, "awsmanagedclusters"), object[infrav1.AWSManagedCluster], nil, nil},
		{kind(plane, "v1beta1", "AWSManagedControlPlane"), capa, file(plane, "awsmanagedcontrolplanes"), object[ekscontrolplanev1beta1.AWSManagedControlPlane], makeHub[ekscontrolplanev1.AWSManagedControlPlane], &ekswebhooks.AWSManagedControlPlane{}},
		{kind(plane, "v1beta2", "AWSManagedControlPlane"), capa, file(plane, "awsmanagedcontrolplanes"), object[ekscontrolplanev1.AWSManagedControlPlane], nil, &ekswebhooks.AWSManagedControlPlane{}},
		{kind(infra, "v1beta1", "AWSClusterRoleIdentity"), capa, file(infra, "awsclusterroleidentities"), object[infrav1beta1.AWSClusterRoleIdentity], makeHub[infrav1.AWSClusterRoleIdentity], &infrawebhooks.AWSClusterRoleIdentity{}},
		{kind(infra, "v1beta2", "AWSClusterRoleIdentity"), capa, file(infra, "awsclusterroleidentities"), object[infrav1.AWSClusterRoleIdentity], nil, &infrawebhooks.AWSClusterRoleIdentity{}},
		{kind(infra, "v1beta1", "AWSClusterControllerIdentity"), capa, file(infra, "awsclustercontrolleridentities"), object[infrav1beta1.AWSClusterControllerIdentity], makeHub[infrav1.AWSClusterControllerIdentity], &infrawebhooks.AWSClusterControllerIdentity{}},
		{kind(infra, "v1beta2", "AWSClusterControllerIdentity"), capa, file(infra, "awsclustercontrolleridentities"), object[infrav1.AWSClusterControllerIdentity], nil, &infrawebhooks.AWSClusterControllerIdentity{}},
	}
}

// name is a subject's in findings: "AWSMachinePool v1beta2".
func (s subject) name() string {
	return s.Kind + " " + s.APIVersion[len(s.APIVersion)-len("v1beta2"):]
}
