//! A name and a key that issues certificates.

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use super::leaf::{Leaf, Validity, is_authority, public_key};
use super::request::Request;
use super::{AUTHORITY_LIFE, BACKDATED, Credential, Error, LEAF_LIFE, Wanted, one_block, subject};

/// A certificate authority: its certificate, which clients trust, and its key.
pub struct Authority {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Authority {
    /// A new authority, made now, with a new key.
    pub fn create(name: &str, now: Timestamp) -> Result<Self, Error> {
        let key = KeyPair::generate().map_err(Error::Make)?;
        Self::with_key(name, key, now)
    }

    /// An authority of this name for a key that is there already. Certificates that the key signed
    /// under that name stay valid.
    pub(super) fn with_key(name: &str, key: KeyPair, now: Timestamp) -> Result<Self, Error> {
        let mut params = params(name, from_now(AUTHORITY_LIFE, now));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key).map_err(Error::Make)?;
        Ok(Self {
            certificate: certificate.into(),
            key,
        })
    }

    /// An authority from its certificate and the key that belongs to it.
    pub(super) fn from_parts(certificate: CertificateDer<'static>, key: KeyPair) -> Self {
        Self { certificate, key }
    }

    /// An authority from its certificate and its key, each one PEM block. They must be a pair, and
    /// the certificate one that may issue others.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, Error> {
        let certificate = super::certificate_from_pem(certificate)?;
        let key = one_block(key, "PRIVATE KEY").ok_or(Error::NotOneKey)?;
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&key.into(), &PKCS_ECDSA_P256_SHA256)
            .map_err(|_| Error::NotOneKey)?;
        if public_key(&certificate)? != key.der_bytes() {
            return Err(Error::NotItsKey);
        }
        if !is_authority(&certificate)? {
            return Err(Error::NotAnAuthority);
        }
        Ok(Self { certificate, key })
    }

    /// The certificate that clients trust.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The certificate that clients trust, as PEM.
    pub fn certificate_pem(&self) -> String {
        super::pem("CERTIFICATE", &self.certificate)
    }

    /// The key as PEM. A secret, and with it everything that the authority vouches for.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// Issues a certificate with a new key.
    pub fn issue(&self, wanted: &Wanted, now: Timestamp) -> Result<Credential, Error> {
        self.issue_for(wanted, LEAF_LIFE, now)
    }

    /// Issues a certificate that lives for `life`, with a new key.
    pub fn issue_for(
        &self,
        wanted: &Wanted,
        life: SignedDuration,
        now: Timestamp,
    ) -> Result<Credential, Error> {
        let key = KeyPair::generate().map_err(Error::Make)?;
        let certificate = self.sign(&key, wanted, from_now(life, now))?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(Credential { certificate, key })
    }

    /// Issues a certificate for the key of a request. What it says is what `wanted` says: of the
    /// request, nothing but its key.
    pub fn certify(
        &self,
        request: &Request,
        wanted: &Wanted,
        validity: Validity,
    ) -> Result<CertificateDer<'static>, Error> {
        let key = request.public_key().map_err(Error::Make)?;
        self.sign(&key, wanted, validity)
    }

    fn sign(
        &self,
        key: &impl PublicKeyData,
        wanted: &Wanted,
        mut validity: Validity,
    ) -> Result<CertificateDer<'static>, Error> {
        let issuer = Issuer::from_ca_cert_der(&self.certificate, &self.key).map_err(Error::Make)?;
        // A leaf does not outlive the authority: no peer would take it then.
        let end = Leaf::read(&self.certificate)?.validity.not_after;
        validity.not_after = validity.not_after.min(end);
        let params = leaf_params(wanted, validity)?;
        let certificate = params.signed_by(key, &issuer).map_err(Error::Make)?;
        match wanted {
            Wanted::Server { .. } => Ok(certificate.into()),
            Wanted::Client { user, groups } => {
                subject::replace(certificate.der(), user, groups, &self.key)
            }
        }
    }
}

fn leaf_params(wanted: &Wanted, validity: Validity) -> Result<CertificateParams, Error> {
    let (name, purpose) = match wanted {
        Wanted::Server { name, .. } => (name, ExtendedKeyUsagePurpose::ServerAuth),
        Wanted::Client { user, .. } => (user, ExtendedKeyUsagePurpose::ClientAuth),
    };
    let mut params = params(name, validity);
    params.is_ca = IsCa::ExplicitNoCa;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    if let Wanted::Server { dns, ips, .. } = wanted {
        for name in dns {
            let name = name.as_str().try_into().map_err(Error::Make)?;
            params.subject_alt_names.push(SanType::DnsName(name));
        }
        params
            .subject_alt_names
            .extend(ips.iter().map(|ip| SanType::IpAddress(*ip)));
    }
    Ok(params)
}

fn params(name: &str, validity: Validity) -> CertificateParams {
    // A clock before 1970 is shown as 1970: what was made then is renewed once the clock is right.
    let date = |moment: Timestamp| {
        let seconds = u64::try_from(moment.as_second()).unwrap_or(0);
        rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(seconds)
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date(validity.not_before);
    params.not_after = date(validity.not_after);
    params
}

/// For so long from now, and a little before, for peers whose clocks are behind.
fn from_now(life: SignedDuration, now: Timestamp) -> Validity {
    Validity {
        not_before: now.checked_sub(BACKDATED).unwrap_or(Timestamp::MIN),
        not_after: now.checked_add(life).unwrap_or(Timestamp::MAX),
    }
}
