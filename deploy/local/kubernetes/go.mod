// Marks the module's root. What a build links is pinned in versions/<minor>.mod and .sum (go build -modfile).
module torchkeeper/deploy/local/kubernetes

go 1.23.0
