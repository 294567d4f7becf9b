package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	expwebhooks "sigs.k8s.io/cluster-api-provider-aws/v2/exp/webhooks"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const namespace = metav1.NamespaceDefault

var scheme = runtime.NewScheme()

func init() {
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, clusterv1beta1.AddToScheme, clusterv1.AddToScheme,
		infrav1.AddToScheme, expinfrav1.AddToScheme, ekscontrolplanev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two kinds of one name: a mistake in this list
		}
	}
}

// objects are those that a management cluster would hold when CAPA sees the pools for the
// first time: the manifests after defaulting, their bootstrap data, and a cluster that is ready.
func objects(ctx context.Context, o options) ([]client.Object, error) {
	read, err := readManifests(o.manifests)
	if err != nil {
		return nil, err
	}
	var all []client.Object
	clusters, owners := map[string]bool{}, map[string]*clusterv1.MachinePool{}
	for _, obj := range read {
		pool, ok := obj.(*clusterv1.MachinePool)
		if !ok {
			continue
		}
		clusters[pool.Spec.ClusterName] = true
		owners[pool.Spec.Template.Spec.InfrastructureRef.Kind+"/"+pool.Spec.Template.Spec.InfrastructureRef.Name] = pool
		pool.Labels = map[string]string{clusterv1.ClusterNameLabel: pool.Spec.ClusterName}
		if pool.Spec.Replicas == nil {
			pool.Spec.Replicas = ptr.To[int32](1) // the default of Cluster API's webhook
		}
		pool.Spec.Template.Spec.Bootstrap.DataSecretName = ptr.To(pool.Name)
		// CAPA stores a new version at each reconcile for a template without user data.
		all = append(all, pool, &corev1.Secret{ObjectMeta: meta(pool.Name), Data: map[string][]byte{"value": []byte("#!/bin/sh\n/etc/eks/bootstrap.sh " + o.eksCluster + "\n")}})
	}
	if len(clusters) != 1 {
		return nil, fmt.Errorf("%s has the pools of %d clusters, want those of one", o.manifests, len(clusters))
	}
	for _, obj := range read {
		kind := obj.GetObjectKind().GroupVersionKind().Kind
		switch obj := obj.(type) {
		case *expinfrav1.AWSMachinePool:
			err = (&expwebhooks.AWSMachinePool{}).Default(ctx, obj)
		case *expinfrav1.AWSManagedMachinePool:
			err = (&expwebhooks.AWSManagedMachinePool{}).Default(ctx, obj)
		default:
			continue
		}
		owner := owners[kind+"/"+obj.GetName()]
		if err != nil || owner == nil {
			return nil, errors.Join(err, fmt.Errorf("%s %s cannot be defaulted, or no MachinePool refers to it", kind, obj.GetName()))
		}
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: owner.Name, UID: owner.UID}})
		all = append(all, obj)
	}
	for name := range clusters {
		cluster, err := cluster(ctx, o, name)
		if err != nil {
			return nil, err
		}
		all = append(all, cluster...)
	}
	return all, nil
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace}
}

// readManifests decodes the objects of a directory, strictly.
func readManifests(dir string) (all []client.Object, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, fmt.Errorf("no manifests in %s", dir))
	}
	slices.Sort(files)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			decoded, _, err := decoder.Decode(document, nil, nil)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			obj, ok := decoded.(client.Object)
			if !ok {
				return nil, fmt.Errorf("%s: %T is no object", file, decoded)
			}
			if old, ok := obj.(*clusterv1beta1.MachinePool); ok {
				converted := &clusterv1.MachinePool{TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool"}}
				if err := old.ConvertTo(converted); err != nil {
					return nil, fmt.Errorf("%s: %w", file, err)
				}
				obj = converted
			}
			obj.SetNamespace(namespace)
			all = append(all, obj)
		}
	}
	return all, nil
}

// cluster is a cluster of EKS that CAPA has made ready, in the emulator's default VPC.
// CAPA takes the fewest calls for pools of such a cluster.
func cluster(ctx context.Context, o options, name string) ([]client.Object, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(o.region))
	if err != nil {
		return nil, err
	}
	api := ec2.NewFromConfig(cfg)
	subnets, err := api.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("default-for-az"), Values: []string{"true"}}}})
	if err != nil {
		return nil, fmt.Errorf("look for subnets: %w", err)
	}
	groups, err := api.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{{Name: aws.String("group-name"), Values: []string{"default"}}}})
	if err != nil {
		return nil, fmt.Errorf("look for security groups: %w", err)
	}
	if len(subnets.Subnets) == 0 || len(groups.SecurityGroups) == 0 {
		return nil, errors.New("the endpoint has no default VPC with subnets and a security group")
	}
	plane := &ekscontrolplanev1.AWSManagedControlPlane{
		ObjectMeta: meta(name),
		Spec:       ekscontrolplanev1.AWSManagedControlPlaneSpec{Region: o.region, EKSClusterName: o.eksCluster},
	}
	plane.Spec.NetworkSpec.VPC.ID = aws.ToString(subnets.Subnets[0].VpcId)
	for _, s := range subnets.Subnets {
		plane.Spec.NetworkSpec.Subnets = append(plane.Spec.NetworkSpec.Subnets, infrav1.SubnetSpec{ID: aws.ToString(s.SubnetId), AvailabilityZone: aws.ToString(s.AvailabilityZone)})
	}
	group := infrav1.SecurityGroup{ID: aws.ToString(groups.SecurityGroups[0].GroupId), Name: "default"}
	plane.Status.Ready = true
	plane.Status.Network.SecurityGroups = map[infrav1.SecurityGroupRole]infrav1.SecurityGroup{infrav1.SecurityGroupNode: group, infrav1.SecurityGroupEKSNodeAdditional: group}

	ref := clusterv1.ContractVersionedObjectReference{APIGroup: ekscontrolplanev1.GroupVersion.Group, Kind: "AWSManagedControlPlane", Name: name}
	c := &clusterv1.Cluster{ObjectMeta: meta(name), Spec: clusterv1.ClusterSpec{ControlPlaneRef: ref, InfrastructureRef: ref}}
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	return []client.Object{c, plane}, nil
}
