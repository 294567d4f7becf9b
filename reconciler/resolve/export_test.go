package resolve

// Known counts what the resolver remembers.
func (r *Resolver) Known() int {
	f := r.facts
	n := len(f.parameters.facts) + len(f.images.facts) + len(f.reviewed.facts) + len(f.namedImages.facts) + len(f.architectures.facts) + len(f.vpcs.facts) +
		len(f.subnets.facts) + len(f.subnetsIn.facts) + len(f.subnetsOf.facts) + len(f.subnetsWith.facts) + len(f.groupsOf.facts) +
		len(f.groupsWith.facts) + len(f.clusters.facts) + len(f.roles.facts)
	return n + len(f.templates.byName.facts) + len(f.templates.byID.facts) + len(f.templates.versions.facts) + len(f.templates.newest)
}
