package kinds

import (
	"fmt"
	"time"

	rows "github.com/weir-gitops/weir/render/field"
)

// AWSMachinePoolSpec is AWSMachinePool.spec: one Auto Scaling group and one
// launch template.
type AWSMachinePoolSpec struct {
	ProviderID                 Anything               `json:"providerID"`
	ProviderIDList             Anything               `json:"providerIDList"`
	MinSize                    int32                  `json:"minSize" default:"1"`
	MaxSize                    int32                  `json:"maxSize" default:"1"`
	AvailabilityZones          []string               `json:"availabilityZones"`
	AvailabilityZoneSubnetType string                 `json:"availabilityZoneSubnetType" in:"v1beta2"`
	Subnets                    []AWSResourceReference `json:"subnets"`
	AdditionalTags             map[string]string      `json:"additionalTags"`
	AWSLaunchTemplate          LaunchTemplate         `json:"awsLaunchTemplate"`
	MixedInstancesPolicy       *MixedInstancesPolicy  `json:"mixedInstancesPolicy"`
	DefaultCoolDown            time.Duration          `json:"defaultCoolDown"`
	DefaultInstanceWarmup      time.Duration          `json:"defaultInstanceWarmup" in:"v1beta2"`
	RefreshPreferences         *RefreshPreferences    `json:"refreshPreferences"`
	CapacityRebalance          bool                   `json:"capacityRebalance"`
	SuspendProcesses           *SuspendProcesses      `json:"suspendProcesses" in:"v1beta2"`
	Ignition                   *Ignition              `json:"ignition" in:"v1beta2"`
	LifecycleHooks             []LifecycleHook        `json:"lifecycleHooks" in:"v1beta2"`
	LaunchConfigRef            *LaunchConfigRef       `json:"launchConfigRef"`
}

func (AWSMachinePoolSpec) unknownHint(name string) string {
	if hasField[LaunchTemplate](name) {
		return "write it under spec.awsLaunchTemplate"
	}
	if at, ok := rows.InPool(rows.Group, name); ok {
		return fmt.Sprintf("Auto Scaling's %s is %q here", name, at)
	}
	if hasField[GroupOptions](name) {
		return "write spec.autoScalingGroup." + name + " in a PoolOptions"
	}
	return ""
}

// MixedInstancesPolicy spreads a group over instance types and markets.
type MixedInstancesPolicy struct {
	InstancesDistribution *InstancesDistribution `json:"instancesDistribution"`
	Overrides             []Override             `json:"overrides"`
}

// InstancesDistribution divides a group between on-demand and spot. The
// defaults are those of CAPA's schema, and AWS's own.
type InstancesDistribution struct {
	OnDemandAllocationStrategy          string `json:"onDemandAllocationStrategy" default:"prioritized"`
	SpotAllocationStrategy              string `json:"spotAllocationStrategy" default:"lowest-price"`
	OnDemandBaseCapacity                int64  `json:"onDemandBaseCapacity" check:"min=0,max=2147483647" default:"0"`
	OnDemandPercentageAboveBaseCapacity int64  `json:"onDemandPercentageAboveBaseCapacity" check:"min=0,max=100" default:"100"`
}

// Override is one instance type of a mixed instances policy.
type Override struct {
	InstanceType string `json:"instanceType" check:"required,minlen=1"`
}

// RefreshPreferences are those of an instance refresh. InstanceWarmup is in seconds.
type RefreshPreferences struct {
	Disable              bool    `json:"disable" in:"v1beta2"`
	Strategy             *string `json:"strategy" enum:"Rolling|"`
	InstanceWarmup       *int64  `json:"instanceWarmup" check:"min=0,max=2147483647"`
	MinHealthyPercentage *int64  `json:"minHealthyPercentage" check:"min=0,max=100"`
	MaxHealthyPercentage *int64  `json:"maxHealthyPercentage" in:"v1beta2"`
}

// SuspendProcesses says which scaling processes are suspended.
type SuspendProcesses struct {
	All       bool       `json:"all"`
	Processes *Processes `json:"processes"`
}

// Processes are the scaling processes; nil is "not declared".
type Processes struct {
	Launch            *bool `json:"launch"`
	Terminate         *bool `json:"terminate"`
	AddToLoadBalancer *bool `json:"addToLoadBalancer"`
	AlarmNotification *bool `json:"alarmNotification"`
	AZRebalance       *bool `json:"azRebalance"`
	HealthCheck       *bool `json:"healthCheck"`
	InstanceRefresh   *bool `json:"instanceRefresh"`
	ReplaceUnhealthy  *bool `json:"replaceUnhealthy"`
	ScheduledActions  *bool `json:"scheduledActions"`
}

// Ignition describes how Ignition user data reaches the instances.
type Ignition struct {
	Version     string         `json:"version"`
	StorageType string         `json:"storageType" default:"ClusterObjectStore"`
	Proxy       *IgnitionProxy `json:"proxy"`
	TLS         *IgnitionTLS   `json:"tls"`
}

// IgnitionProxy is not carried to pools by CAPA either.
type IgnitionProxy struct {
	HTTPProxy  *string  `json:"httpProxy"`
	HTTPSProxy *string  `json:"httpsProxy"`
	NoProxy    []string `json:"noProxy"`
}

// IgnitionTLS is not carried to pools by CAPA either.
type IgnitionTLS struct {
	CertificateAuthorities []string `json:"certificateAuthorities"`
}

// LifecycleHook is a lifecycle hook of an Auto Scaling group.
type LifecycleHook struct {
	Name                  string         `json:"name" check:"required,minlen=1"`
	LifecycleTransition   string         `json:"lifecycleTransition" check:"required"`
	NotificationTargetARN *string        `json:"notificationTargetARN"`
	RoleARN               *string        `json:"roleARN"`
	HeartbeatTimeout      *time.Duration `json:"heartbeatTimeout"`
	DefaultResult         string         `json:"defaultResult"`
	NotificationMetadata  *string        `json:"notificationMetadata"`
}
