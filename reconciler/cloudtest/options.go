package cloudtest

import (
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/intent"
)

// optionContracts are about the members of a template that PoolOptions sets: a
// version with one of them has to read back as what was sent, or it would be
// made anew at each pass.
func optionContracts() []contract {
	yes, no, first, second := true, false, int32(0), int32(1)
	read := func(data intent.TemplateData) func(*env) { return func(e *env) { e.comesBack(data) } }
	return []contract{
		{"CPU options", nil, read(intent.TemplateData{CPUOptions: &intent.CPUOptions{CoreCount: 1, ThreadsPerCore: 1}})},
		{"credits", nil, read(intent.TemplateData{CreditSpecification: &intent.CreditSpecification{CPUCredits: "unlimited"}})},
		{"protection and shutdown", nil, read(intent.TemplateData{DisableAPIStop: &yes, DisableAPITermination: &no, InstanceInitiatedShutdownBehavior: "terminate"})},
		{"optimised for EBS", nil, read(intent.TemplateData{EbsOptimized: &no})},
		{"hibernation", nil, read(intent.TemplateData{HibernationOptions: &intent.HibernationOptions{Configured: &yes}})},
		{"maintenance", nil, read(intent.TemplateData{MaintenanceOptions: &intent.MaintenanceOptions{AutoRecovery: "disabled"}})},
		{"monitoring", nil, read(intent.TemplateData{Monitoring: &intent.Monitoring{Enabled: &yes}})},
		{"bandwidth", nil, read(intent.TemplateData{NetworkPerformanceOptions: &intent.NetworkPerformanceOptions{BandwidthWeighting: "vpc-1"}})},
		{"placement", nil, read(intent.TemplateData{Placement: &intent.Placement{GroupName: "close", PartitionNumber: 2, Tenancy: "dedicated"}})},
		{"licences", nil, read(intent.TemplateData{LicenseSpecifications: []intent.LicenseConfiguration{{LicenseConfigurationARN: "arn:aws:license-manager:eu-west-1:000000000000:license-configuration:lic-0123456789abcdef0"}}})},
		{"a group of reservations", nil, read(intent.TemplateData{CapacityReservationSpecification: &intent.CapacityReservation{TargetGroupARN: "arn:aws:resource-groups:eu-west-1:000000000000:group/gpu"}})},
		{"network interfaces", nil, read(intent.TemplateData{NetworkInterfaces: []intent.NetworkInterface{
			{DeviceIndex: &first, InterfaceType: "efa", DeleteOnTermination: &yes, Groups: []string{"sg-0123456789abcdef0", "sg-1123456789abcdef0"}},
			{DeviceIndex: &second, NetworkCardIndex: &second, InterfaceType: "efa-only", Description: "second"},
		}})},
	}
}

// comesBack makes a template and reads its version by weir's own adapter.
func (e *env) comesBack(data intent.TemplateData) {
	e.Helper()
	data.ImageID, data.InstanceType = e.image(), "m5.large"
	c := e.cloud()
	a := e.templateAction(e.mark, "a")
	a.Data = data
	ref := e.run(c, a).Template
	e.Cleanup(func() {
		_, _ = c.Execute(e.background(), plan.DeleteLaunchTemplate{Template: plan.TemplateRef{ID: ref.ID, Name: ref.Name}})
	})
	s := e.fill(c, e.observe(c, e.mark), plan.Needs{Versions: []plan.TemplateRef{{ID: ref.ID, Name: ref.Name, Version: "1"}}})
	v := s.Templates[e.name("a")].Versions[1]
	if v.Unknown {
		e.Error("the version holds members that weir does not know")
	}
	v.Data.TagSpecifications = nil // moto server puts the tags of the template itself there
	e.equal("data", data, v.Data)
}
