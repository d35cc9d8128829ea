//! A name and a key that issues certificates.

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use super::leaf::Leaf;
use super::{AUTHORITY_LIFE, BACKDATED, Credential, Error, LEAF_LIFE, Wanted, subject};

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
        let mut params = params(name, after(now, AUTHORITY_LIFE), now);
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

    /// The certificate that clients trust.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The certificate that clients trust, as PEM.
    pub fn certificate_pem(&self) -> String {
        super::pem("CERTIFICATE", &self.certificate)
    }

    /// The key as PEM. A secret.
    pub(super) fn key_pem(&self) -> String {
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
        let issuer = Issuer::from_ca_cert_der(&self.certificate, &self.key).map_err(Error::Make)?;
        // A leaf does not outlive the authority: no peer would take it then.
        let end = Leaf::read(&self.certificate)?
            .validity
            .not_after
            .min(after(now, life));
        let params = leaf_params(wanted, end, now)?;
        let certificate = params.signed_by(&key, &issuer).map_err(Error::Make)?;
        let certificate = match wanted {
            Wanted::Server { .. } => certificate.into(),
            Wanted::Client { user, groups } => {
                subject::replace(certificate.der(), user, groups, &self.key)?
            }
        };
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(Credential { certificate, key })
    }
}

fn leaf_params(
    wanted: &Wanted,
    end: Timestamp,
    now: Timestamp,
) -> Result<CertificateParams, Error> {
    let (name, purpose) = match wanted {
        Wanted::Server { name, .. } => (name, ExtendedKeyUsagePurpose::ServerAuth),
        Wanted::Client { user, .. } => (user, ExtendedKeyUsagePurpose::ClientAuth),
    };
    let mut params = params(name, end, now);
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

fn params(name: &str, end: Timestamp, now: Timestamp) -> CertificateParams {
    // A clock before 1970 is shown as 1970: what was made then is renewed once the clock is right.
    let date = |moment: Timestamp| {
        let seconds = u64::try_from(moment.as_second()).unwrap_or(0);
        rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(seconds)
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date(now.checked_sub(BACKDATED).unwrap_or(Timestamp::MIN));
    params.not_after = date(end);
    params
}

fn after(now: Timestamp, life: SignedDuration) -> Timestamp {
    now.checked_add(life).unwrap_or(Timestamp::MAX)
}
