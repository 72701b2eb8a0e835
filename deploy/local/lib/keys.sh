# The cluster's own authority, one key pair per identity, and the kubeconfig files made of them.
# shellcheck shell=bash

readonly KEY_DAYS=3650

# An existing file is complete (write_file, or renamed), so an interrupted run can continue.
make_authority() {
    [ -s "$PKI/ca.crt" ] && return
    rm -f -- "$PKI"/*
    openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/ca.key" 2>/dev/null
    openssl req -x509 -new -key "$PKI/ca.key" -subj /CN=torchkeeper-local -days "$KEY_DAYS" -out "$PKI/ca.crt.new" \
        -addext keyUsage=critical,keyCertSign,digitalSignature 2>/dev/null
    mv -f -- "$PKI/ca.crt.new" "$PKI/ca.crt"
}

# make_certificate NAME SUBJECT [ALTERNATIVE-NAMES]
make_certificate() {
    local name=$1 subject=$2 names=${3:-}
    [ -s "$PKI/$name.crt" ] && return
    openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/$name.key" 2>/dev/null
    openssl req -new -key "$PKI/$name.key" -subj "$subject" -out "$PKI/$name.csr" 2>/dev/null
    {
        printf 'keyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n'
        if [ -n "$names" ]; then printf 'subjectAltName=%s\n' "$names"; fi
    } >"$PKI/$name.ext"
    openssl x509 -req -in "$PKI/$name.csr" -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -CAcreateserial \
        -days "$KEY_DAYS" -extfile "$PKI/$name.ext" -out "$PKI/$name.crt.new" 2>/dev/null
    rm -f -- "$PKI/$name.csr" "$PKI/$name.ext"
    mv -f -- "$PKI/$name.crt.new" "$PKI/$name.crt"
}

make_service_account_key() {
    [ -s "$PKI/sa.pub" ] && return
    openssl genrsa -out "$PKI/sa.key" 2048 2>/dev/null
    openssl rsa -in "$PKI/sa.key" -pubout -out "$PKI/sa.pub.new" 2>/dev/null
    mv -f -- "$PKI/sa.pub.new" "$PKI/sa.pub"
}

# make_kubeconfig PATH NAME: the keys are inside, so the file works wherever it is copied.
make_kubeconfig() {
    [ "$1" -nt "$PKI/$2.crt" ] && return
    (
        umask 077
        write_file "$1" <<END
apiVersion: v1
kind: Config
current-context: torchkeeper
clusters:
- name: torchkeeper
  cluster: {server: "$API_URL", certificate-authority-data: $(base64 -w 0 "$PKI/ca.crt")}
users:
- name: $2
  user: {client-certificate-data: $(base64 -w 0 "$PKI/$2.crt"), client-key-data: $(base64 -w 0 "$PKI/$2.key")}
contexts:
- name: torchkeeper
  context: {cluster: torchkeeper, user: $2}
END
    )
}

# The identities of etcd and the Kubernetes programs that need no node.
make_control_plane_keys() {
    local names="IP:127.0.0.1,IP:$API_ADDRESS,IP:$FIRST_SERVICE_ADDRESS,DNS:localhost" domain name
    for domain in kubernetes kubernetes.default kubernetes.default.svc "kubernetes.default.svc.$DNS_DOMAIN"; do
        names+=",DNS:$domain"
    done
    mkdir -p -- "$PKI"
    chmod 0700 -- "$PKI"
    make_authority
    make_service_account_key
    make_certificate etcd /CN=etcd "IP:127.0.0.1,DNS:localhost"
    make_certificate kube-apiserver /CN=kube-apiserver "$names"
    make_certificate admin /O=system:masters/CN=admin
    make_certificate front-proxy-client /CN=front-proxy-client # the API server's, before APIs of others
    make_certificate kube-controller-manager /CN=system:kube-controller-manager
    make_certificate kube-scheduler /CN=system:kube-scheduler
    make_kubeconfig "$STATE/admin.conf" admin
    for name in kube-controller-manager kube-scheduler; do
        make_kubeconfig "$CONFIG/$name.conf" "$name"
    done
}

make_node_keys() {
    local name
    make_certificate kubelet-server "/CN=$NODE" "IP:$NODE_ADDRESS,DNS:$NODE"
    make_certificate kube-proxy /CN=system:kube-proxy
    make_certificate kubelet "/O=system:nodes/CN=system:node:$NODE"
    for name in kube-proxy kubelet; do
        make_kubeconfig "$CONFIG/$name.conf" "$name"
    done
}

# What the cluster has once, whatever its nodes.
make_service_keys() {
    local name
    for name in coredns host-agent; do
        make_certificate "$name" "/CN=torchkeeper:$name"
        make_kubeconfig "$CONFIG/$name.conf" "$name"
    done
}
